import { OctavoError } from "@octavo/protocol";
import type { Answer } from "../answers/answer.js";
import type { EvalCase } from "../cases/eval-case.js";
import type { Dataset } from "../datasets/dataset.js";
import type { Evaluator, Sample, Score } from "../evaluators/evaluator.js";
import { reasonToSkip } from "../evaluators/inputs.js";
import { concurrently } from "../runners/concurrently.js";
import type { Runner } from "../runners/runner.js";
import type { Target } from "../targets/target.js";
import type { CaseJournal } from "./case-journal.js";
import type { CaseRow, ScoredAnswer } from "./case-row.js";

/** What is run: every case through every target and every evaluator. */
export interface CaseRun {
  readonly datasets: readonly Dataset[];
  /** Each answers every case. One called `baseline` is what evaluators that compare compare with. */
  readonly targets: readonly Target[];
  readonly evaluators: readonly Evaluator[];
  readonly runner: Runner;
  /** Requests in flight. */
  readonly concurrency: number;
  readonly signal: AbortSignal;
  readonly journal?: CaseJournal | undefined;
  readonly onProgress?: (progress: CaseProgress) => void;
}

/** Cases so far, in number. */
export interface CaseProgress {
  readonly done: number;
  readonly total: number | undefined;
  /** Answers that failed. */
  readonly failed: number;
  /** Rows that the journal had. */
  readonly resumed: number;
}

interface Placed {
  readonly dataset: string;
  readonly evalCase: EvalCase;
}

/**
 * Asks every target every case, scores what they say, and yields one row a case. Cases go in blocks, and in each block the
 * targets take turns, the one that begins alternating: each has the machine to itself, and what drifts over the run meets
 * both. Nothing is kept of a row that was taken.
 *
 * @throws OctavoError `target_unreachable` when no answer of the first block came from a target
 */
export async function* runCases(run: CaseRun): AsyncGenerator<CaseRow, void, undefined> {
  const { journal, signal, concurrency } = run;
  const blockSize = Math.max(16, 4 * concurrency);
  const sizes = run.datasets.map(({ size }) => size);
  const total = sizes.reduce<number | undefined>(
    (sum, size) => (sum === undefined || size === undefined ? undefined : sum + size),
    0,
  );
  const progress = { done: 0, failed: 0, resumed: 0 };
  let block = 0;
  let waiting: Placed[] = [];
  function* counted(rows: readonly CaseRow[]): Generator<CaseRow, void, undefined> {
    for (const row of rows) {
      progress.done += 1;
      run.onProgress?.({ ...progress, total });
      yield row;
    }
  }
  const runWaiting = async (): Promise<readonly CaseRow[]> => {
    const asked = waiting;
    const rows = await runBlock(run, asked, block, () => {
      progress.failed += 1;
    });
    if (block === 0) requireAnswers(run.targets, rows);
    await journal?.append(
      asked.flatMap(({ evalCase }, at) => {
        const row = rows[at];
        return row === undefined ? [] : [{ row, evalCase }];
      }),
    );
    await run.runner.acknowledge?.();
    block += 1;
    waiting = [];
    return rows;
  };
  for (const dataset of run.datasets)
    for await (const evalCase of dataset.cases()) {
      signal.throwIfAborted();
      const known = await journal?.read(dataset.name, evalCase);
      if (known !== undefined) {
        block = Math.max(block, known.block + 1);
        progress.resumed += 1;
        yield* counted([known]);
        continue;
      }
      waiting.push({ dataset: dataset.name, evalCase });
      if (waiting.length === blockSize) yield* counted(await runWaiting());
    }
  if (waiting.length > 0) yield* counted(await runWaiting());
}

async function runBlock(
  run: CaseRun,
  block: readonly Placed[],
  index: number,
  onFailure: () => void,
): Promise<readonly CaseRow[]> {
  const turns = index % 2 === 0 ? run.targets : run.targets.toReversed();
  const answers = new Map<string, readonly Answer[]>();
  for (const target of turns) answers.set(target.name, await ask(run, target, block, onFailure));
  const scored = new Map<string, readonly ScoredAnswer[]>();
  for (const { name } of run.targets)
    scored.set(name, await score(run, block, answers.get(name) ?? [], answers.get("baseline")));
  return block.map(({ dataset, evalCase }, at) => ({
    caseId: evalCase.id,
    dataset,
    block: index,
    cluster: evalCase.cluster,
    tenant: evalCase.tenant,
    tags: evalCase.tags,
    input: inputOf(evalCase),
    expected: expectedOf(evalCase),
    answers: Object.fromEntries(
      run.targets.flatMap(({ name }) => {
        const answer = scored.get(name)?.[at];
        return answer === undefined ? [] : [[name, answer]];
      }),
    ),
  }));
}

async function ask(
  { concurrency, signal }: CaseRun,
  target: Target,
  block: readonly Placed[],
  onFailure: () => void,
): Promise<readonly Answer[]> {
  const answers: Answer[] = [];
  const asked = concurrently(
    block.entries(),
    concurrency,
    async ([at, { evalCase }], ownSignal) => ({
      at,
      answer: await target.answer(evalCase, { signal: ownSignal }),
    }),
    signal,
  );
  for await (const { at, answer } of asked) {
    answers[at] = answer;
    if (answer.failure !== undefined) onFailure();
  }
  return answers;
}

/** Rows of different datasets may have the same case id, so runners know cases by their place in the block. */
async function score(
  { runner, evaluators, signal }: CaseRun,
  block: readonly Placed[],
  answers: readonly Answer[],
  baseline: readonly Answer[] | undefined,
): Promise<readonly ScoredAnswer[]> {
  const scores = answers.map((): Record<string, Score> => ({}));
  if (evaluators.length > 0) {
    const samples = answers.flatMap((answer, at): readonly Sample[] => {
      const placed = block[at];
      const other = baseline?.[at];
      if (placed === undefined) return [];
      const sample = {
        case: { ...placed.evalCase, id: String(at) },
        answer,
        ...(other === undefined || other === answer ? {} : { baseline: other }),
      };
      if (answer.failure === undefined) return [sample];
      for (const evaluator of evaluators) {
        const reason = reasonToSkip(evaluator, sample);
        const own = scores[at];
        if (own !== undefined && reason !== undefined) own[evaluator.name] = { status: "skipped", reason };
      }
      return [];
    });
    for await (const { caseId, evaluator, score: one } of runner.run(samples, evaluators, {
      signal,
      untilAcknowledged: true,
    })) {
      const own = scores[Number(caseId)];
      if (own !== undefined) own[evaluator] = one;
    }
  }
  return answers.map((answer, at) => ({ answer, scores: scores[at] ?? {} }));
}

function requireAnswers(targets: readonly Target[], rows: readonly CaseRow[]): void {
  for (const { name } of targets) {
    const failures = rows.map((row) => row.answers[name]?.answer.failure);
    const [first] = failures;
    if (first !== undefined && failures.every((failure) => failure?.code === "connection"))
      throw new OctavoError("target_unreachable", `the target ${name} does not answer: ${first.message}`, {
        param: name,
      });
  }
}

function inputOf({ messages }: EvalCase): string {
  return messages.findLast(({ role }) => role === "user")?.content ?? messages.at(-1)?.content ?? "";
}

function expectedOf({ expected }: EvalCase): string | undefined {
  if (expected.outputs !== undefined) return expected.outputs[0];
  if (expected.toolCalls !== undefined)
    return expected.toolCalls
      .map(({ name, arguments: accepted }) => `${name}(${JSON.stringify(accepted)})`)
      .join("\n");
  return expected.schema === undefined ? undefined : JSON.stringify(expected.schema, null, 2);
}
