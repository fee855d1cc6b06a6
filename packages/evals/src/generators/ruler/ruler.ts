import { createHash } from "node:crypto";
import { OctavoError } from "@octavo/protocol";
import { Random } from "@octavo/statistics";
import type { EvalCase } from "../../cases/eval-case.js";
import type { Dataset } from "../../datasets/dataset.js";
import { type CountTokens, fitLength } from "./fit-length.js";
import { needleTasks } from "./needles.js";
import { ownPrompt } from "../../datasets/formats/benchmark-prompt.js";
import { questionTasks } from "./question-answering.js";
import { type RulerQuestion, type RulerTask, type RulerTaskName, rulerTaskNames } from "./ruler-task.js";
import { variableTracking } from "./variable-tracking.js";
import { commonWords, frequentWords } from "./word-counting.js";

const tasks: readonly RulerTask[] = [
  ...needleTasks,
  variableTracking,
  commonWords,
  frequentWords,
  ...questionTasks,
];

/** How cases of RULER (arXiv 2404.06654) are made. Lengths in tokens. */
export interface RulerOptions {
  /** Default: those that the given texts and questions suffice for. */
  readonly tasks?: readonly RulerTaskName[];
  /** Wanted lengths, each with the answer's tokens. */
  readonly lengthsTokens: readonly number[];
  /** Cases of each task at each length; the benchmark has 500. */
  readonly count: number;
  /** Another seed gives other cases. */
  readonly seed: number | string;
  readonly countTokens: CountTokens;
  /** Tokens that a chat template adds. Default 0. */
  readonly overheadTokens?: number;
  /** What needles are hidden in, for `niah_single_2`, `niah_single_3`, `niah_multikey_1`, `niah_multivalue`, `niah_multiquery`. */
  readonly text?: string;
  /** For `qa_1` and `qa_2`. */
  readonly questions?: readonly RulerQuestion[];
}

const minSentences = 20;
const maxLengthTokens = 16 * 1024 * 1024;

/**
 * The thirteen tasks of RULER (Hsieh et al., 2024, arXiv 2404.06654), generated for any length. What is hidden, in what,
 * how often and how answers are matched follows the benchmark; instructions and word lists are our own, and texts and
 * questions the user's, so that scores compare with other runs of this generator and not with published tables. The
 * `string_match` evaluator scores them.
 * @throws OctavoError `invalid_option`
 */
export function rulerDataset(options: RulerOptions): Dataset {
  const { lengthsTokens, count } = options;
  const sentences = options.text === undefined ? [] : splitSentences(options.text);
  const questions = options.questions ?? [];
  const has = { nothing: true, text: sentences.length >= minSentences, questions: questions.length > 0 };
  const wanted = options.tasks ?? rulerTaskNames.filter((name) => has[taskOf(name).needs]);
  for (const name of wanted) {
    const { needs } = taskOf(name);
    if (has[needs]) continue;
    const problem =
      needs === "text"
        ? `${name} hides its needles in a text: give one of at least ${minSentences} sentences`
        : `${name} asks questions over documents: give some`;
    throw new OctavoError("invalid_option", problem, { param: needs });
  }
  checkCount("count", count, 1, 1_000_000);
  for (const length of lengthsTokens) checkCount("lengthsTokens", length, 1, maxLengthTokens);
  return {
    name: "ruler",
    size: wanted.length * lengthsTokens.length * count,
    async *cases() {
      for (const name of wanted) {
        for (const lengthTokens of lengthsTokens) {
          yield* taskCases(taskOf(name), lengthTokens, sentences, options);
        }
      }
    },
  };
}

async function* taskCases(
  task: RulerTask,
  lengthTokens: number,
  sentences: readonly string[],
  { count, seed, countTokens, overheadTokens = 0, questions = [] }: RulerOptions,
): AsyncGenerator<EvalCase> {
  const budget = lengthTokens - task.answerTokens - overheadTokens;
  let guess = Math.max(1, Math.floor(budget / 30));
  for (let index = 0; index < count; index++) {
    const id = `ruler-${task.name}-${lengthTokens}-${seed}-${index}`;
    const draft = task.draw({ random: randomOf(id), lengthTokens, sentences, questions });
    const fitted = await fit(task, draft, budget, countTokens, guess);
    guess = fitted.size;
    yield {
      id,
      messages: [{ role: "user", content: fitted.prompt }],
      tools: [],
      context: undefined,
      expected: {
        outputs: task.match === "all" ? [draft.references.join(", ")] : draft.references,
      },
      parameters: { maxTokens: task.answerTokens, temperature: 0 },
      tenant: undefined,
      cluster: undefined,
      tags: ["ruler", task.name, `length:${lengthTokens}`],
      metadata: {
        benchmark: "ruler",
        match: task.match,
        references: draft.references,
        promptTokens: fitted.promptTokens,
        prompt: ownPrompt,
      },
    };
  }
}

async function fit(
  task: RulerTask,
  draft: Parameters<typeof fitLength>[0],
  budget: number,
  countTokens: CountTokens,
  guess: number,
): ReturnType<typeof fitLength> {
  try {
    return await fitLength(draft, budget, countTokens, guess);
  } catch (thrown) {
    if (!(thrown instanceof OctavoError)) throw thrown;
    throw new OctavoError(thrown.code, `${task.name}: ${thrown.message}`, {
      ...(thrown.param !== undefined && { param: thrown.param }),
      cause: thrown,
    });
  }
}

function taskOf(name: RulerTaskName): RulerTask {
  const task = tasks.find((one) => one.name === name);
  if (task !== undefined) return task;
  throw new OctavoError(
    "invalid_option",
    `there is no RULER task ${JSON.stringify(name)}; there are ${rulerTaskNames.join(", ")}`,
    { param: "tasks" },
  );
}

function checkCount(param: string, value: number, from: number, to: number): void {
  if (Number.isInteger(value) && value >= from && value <= to) return;
  throw new OctavoError(
    "invalid_option",
    `${param}: expected a whole number from ${from} to ${to}, got ${value}`,
    { param },
  );
}

function randomOf(id: string): Random {
  return new Random(createHash("sha256").update(id).digest().readBigUInt64LE());
}

/** Sentences of a text, each on one line. */
function splitSentences(text: string): string[] {
  const segmenter = new Intl.Segmenter("en", { granularity: "sentence" });
  return Array.from(segmenter.segment(text), ({ segment }) => segment.replaceAll(/\s+/g, " ").trim()).filter(
    (sentence) => sentence !== "",
  );
}
