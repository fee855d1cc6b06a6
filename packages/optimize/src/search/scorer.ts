import {
  type Answer,
  concurrently,
  type EvalCase,
  type Evaluator,
  type Score,
  type Target,
} from "@octavo/evals";
import { OctavoError } from "@octavo/protocol";
import { applyCandidate, type Candidate, candidateKey } from "../artifact/candidate.js";
import { added, type Budget, BudgetEnded, nothingSpent, type Spending } from "./budget.js";
import { type CandidateResult, journalKey, type SearchJournal } from "./journal-rows.js";

export interface TokenPrices {
  readonly input: number;
  readonly output: number;
}

export interface ScorerSettings {
  /** The artifact that will serve. */
  readonly target: Target;
  readonly evaluators: readonly Evaluator[];
  /** Requests in flight: a round's candidates meet their cases together, so that the engine batches them. */
  readonly concurrency: number;
  /** A case is sampled under the same seed for every candidate. */
  readonly seed: number;
  /** What else answers depend on, such as the target's address and model. */
  readonly fingerprint: string;
  readonly usdPerMillionTokens?: TokenPrices | undefined;
  readonly journal?: SearchJournal | undefined;
  readonly signal: AbortSignal;
  readonly onScored?: ((result: CandidateResult) => void) | undefined;
}

export interface Asked {
  readonly candidate: Candidate;
  readonly evalCase: EvalCase;
}

/** Failures that say nothing about a candidate: the search stops, and its journal goes on from there. */
const ofTheServer =
  /^(connection|timeout|truncated|stream_error|queue_full|overloaded|shutting_down|http_(429|5\d\d))$/;
const refusedForGood = 400;

/** Scores candidates on cases. Nothing is asked twice, whether in this run or in one that the journal remembers. */
export class CandidateScorer {
  readonly #settings: ScorerSettings;
  readonly #known = new Map<string, CandidateResult>();

  constructor(settings: ScorerSettings) {
    this.#settings = settings;
  }

  /**
   * Results in the order of the questions, which are all asked as one batch.
   * @param budget what is asked for the first time is charged to it
   * @throws BudgetEnded where it does not suffice; what was asked by then is known
   * @throws OctavoError `target_unreachable`, `judge_failed`
   */
  async scoreAll(asked: readonly Asked[], budget?: Budget): Promise<readonly CandidateResult[]> {
    const prefixes = new Map<Candidate, string>();
    const keys = asked.map(({ candidate, evalCase }) => {
      const key = prefixes.get(candidate) ?? candidateKey(candidate);
      prefixes.set(candidate, key);
      return this.#keyOf(key, evalCase);
    });
    const fresh = new Map<string, Asked>();
    for (const [index, key] of keys.entries()) if (!this.#known.has(key)) fresh.set(key, asked[index]!);
    const { signal, concurrency } = this.#settings;
    const allowed = leadersFirst([...fresh].slice(0, budget?.callsLeft));
    const source = function* (): Generator<readonly [string, Asked]> {
      for (const one of allowed) {
        if (budget?.refusal() !== undefined) return;
        yield one;
      }
    };
    for await (const scored of concurrently(
      source(),
      concurrency,
      ([key, one], own) => this.#scoreOne(key, one, budget, own),
      signal,
    )) {
      this.#known.set(scored.key, scored.result);
      this.#settings.onScored?.(scored.result);
    }
    return keys.map((key) => {
      const result = this.#known.get(key);
      if (result === undefined) throw new BudgetEnded(budget?.refusal() ?? "the budget is used up");
      return result;
    });
  }

  #keyOf(candidate: string, evalCase: EvalCase): string {
    const { evaluators, seed, fingerprint } = this.#settings;
    const { messages, tools, context, expected, parameters } = evalCase;
    const scoredBy = evaluators.map(({ name, spec, fingerprint: own }) => [name, spec, own]);
    return journalKey(
      JSON.stringify([
        candidate,
        evalCase.id,
        messages,
        tools,
        context,
        expected,
        parameters,
        scoredBy,
        seed,
        fingerprint,
      ]),
    );
  }

  async #scoreOne(
    key: string,
    { candidate, evalCase }: Asked,
    budget: Budget | undefined,
    signal: AbortSignal,
  ): Promise<{ readonly key: string; readonly result: CandidateResult }> {
    const { journal, target, evaluators, seed, usdPerMillionTokens } = this.#settings;
    const kept = await journal?.read(key);
    if (kept?.result !== undefined) {
      budget?.charge(kept.cost);
      return { key, result: kept.result };
    }
    const rendered = applyCandidate(candidate, evalCase);
    const parameters = { seed: caseSeed(seed, evalCase.id), ...rendered.parameters };
    const answer = await target.answer({ ...rendered, parameters }, { signal, stream: false });
    const result = await resultOf(evalCase, answer, evaluators, signal);
    const cost = spendingOf(answer, usdPerMillionTokens);
    budget?.charge(cost);
    await journal?.append(key, { cost, result });
    return { key, result };
  }
}

/**
 * One question of each candidate before all others: what a candidate's requests begin with is then in the engine's prefix cache when
 * the rest of them comes.
 */
function leadersFirst(asked: readonly (readonly [string, Asked])[]): readonly (readonly [string, Asked])[] {
  const led = new Set<Candidate>();
  const leaders = asked.filter(([, { candidate }]) => !led.has(candidate) && led.add(candidate));
  const isLeader = new Set(leaders);
  return [...leaders, ...asked.filter((one) => !isLeader.has(one))];
}

/** A seed of a case, the same in every round and for every candidate. */
function caseSeed(seed: number, caseId: string): number {
  return Number.parseInt(journalKey(`${seed} ${caseId}`).slice(0, 7), 16);
}

/** What an answer cost. */
export function spendingOf(answer: Answer, prices: TokenPrices | undefined): Spending {
  const { promptTokens = 0, completionTokens = 0 } = answer.usage;
  return added(nothingSpent, {
    calls: 1,
    tokens: promptTokens + completionTokens,
    dollars:
      prices === undefined ? 0 : (promptTokens * prices.input + completionTokens * prices.output) / 1e6,
    gpuSeconds: (answer.serving?.kernel_ms ?? answer.timing.durationMs) / 1000,
  });
}

/** @throws OctavoError `target_unreachable` for a failure that is not the request's */
export function requireAnswer(answer: Answer, whose: string): void {
  const { failure } = answer;
  if (failure === undefined) return;
  const isPassing = ofTheServer.test(failure.code) || (failure.httpStatus ?? refusedForGood) >= 500;
  if (isPassing || failure.httpStatus === 401 || failure.httpStatus === 403 || failure.httpStatus === 404)
    throw new OctavoError(
      "target_unreachable",
      `${whose} gave no answer (${failure.code}): ${failure.message}`,
    );
}

async function resultOf(
  evalCase: EvalCase,
  answer: Answer,
  evaluators: readonly Evaluator[],
  signal: AbortSignal,
): Promise<CandidateResult> {
  requireAnswer(answer, "the target");
  const output = [answer.text, ...answer.toolCalls.map(({ name, arguments: given }) => `${name}(${given})`)]
    .join("\n")
    .trim();
  if (answer.failure !== undefined)
    return { caseId: evalCase.id, score: 0, output, feedback: `refused: ${answer.failure.message}` };
  const scores = await Promise.all(
    evaluators.map(async (evaluator) => ({
      name: evaluator.name,
      score: await evaluator.evaluate({ case: evalCase, answer }, { signal }),
    })),
  );
  const values = scores.flatMap(({ name, score }) => {
    if (score.status === "failed") throw new OctavoError("judge_failed", `${name}: ${score.reason}`);
    return score.status === "scored" ? [score.value] : [];
  });
  if (values.length === 0)
    throw new OctavoError(
      "dataset_invalid",
      `case ${evalCase.id} was scored by no evaluator: ${scores.map(({ score }) => reasonOf(score)).join("; ")}`,
      { param: "evaluators" },
    );
  const feedback = scores.map(({ name, score }) => `${name}: ${reasonOf(score)}`).join("\n");
  return {
    caseId: evalCase.id,
    score: values.reduce((sum, value) => sum + value, 0) / values.length,
    output,
    feedback,
  };
}

function reasonOf(score: Score): string {
  if (score.status !== "scored") return score.reason;
  const verdict = score.passed ? "right" : "wrong";
  return score.reason === undefined ? verdict : `${verdict}, ${score.reason}`;
}
