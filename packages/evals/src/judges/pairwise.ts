import { wilsonInterval, type Interval } from "@octavo/statistics";
import { z } from "zod";
import type { Score } from "../evaluators/evaluator.js";
import { measured } from "../evaluators/outcomes.js";
import { defineEvaluator } from "../evaluators/registry.js";
import { fingerprintOf, judgeOf } from "./judge-services.js";
import type { JudgeModel, JudgeQuestion } from "./judge.js";
import { judgeRole } from "./rubric-question.js";
import { showTexts, sampleText } from "./sample-texts.js";

/** Two answers to one input, of which a judge says the better. */
export interface ComparedPair {
  readonly input: string | undefined;
  readonly one: string;
  readonly other: string;
}

/** Which position a judge preferred in one order. */
type Preference = "first" | "second" | "tie";

/** Two answers to one case, compared by a judge in both orders. */
export interface Comparison {
  /** The winner where both orders agree; else the position decided, and the pair is a tie. */
  readonly winner: "one" | "other" | "tie";
  /** With `one` first, and with `other` first. */
  readonly preferences: readonly [Preference, Preference];
  readonly reasons: readonly (string | undefined)[];
}

const labels: Readonly<Record<string, Preference>> = { A: "first", B: "second", tie: "tie" };

/** Asks which of two answers is better, in both orders. Rejects as the judge does. */
export async function comparePair(
  judge: JudgeModel,
  pair: ComparedPair,
  criteria: string,
  options: { readonly signal: AbortSignal; readonly withReason?: boolean },
): Promise<Comparison> {
  const ask = async (first: string, second: string): Promise<[Preference, string | undefined]> => {
    const question: JudgeQuestion = {
      system: `${judgeRole}\n\nTo decide: which of two answers is better, A or B, by these criteria:\n${criteria}\nThe order in which they are shown means nothing. Choose tie where neither is better.`,
      user: showTexts([
        ...(pair.input === undefined ? [] : [{ name: "input", text: pair.input }]),
        { name: "answer A", text: first },
        { name: "answer B", text: second },
      ]),
      labels: Object.keys(labels),
      withReason: options.withReason ?? true,
    };
    const { label, reason } = await judge.ask(question, options);
    return [labels[label] ?? "tie", reason];
  };
  const [[forward, reason], [backward, swappedReason]] = await Promise.all([
    ask(pair.one, pair.other),
    ask(pair.other, pair.one),
  ]);
  return {
    winner:
      forward === "first" && backward === "second"
        ? "one"
        : forward === "second" && backward === "first"
          ? "other"
          : "tie",
    preferences: [forward, backward],
    reasons: [reason, swappedReason],
  };
}

const pairwiseOptions = z.strictObject({
  criteria: z
    .string()
    .trim()
    .min(1)
    .max(50_000)
    .default("It does what the input asks: right first, then complete, then clear."),
  model: z.string().min(1).max(4096).optional(),
  with_reason: z.boolean().default(true),
});

const values = { one: 1, tie: 0.5, other: 0 } as const;
const winnerLabels = { one: "better", tie: "tie", other: "worse" } as const;

/** The answer against the baseline's. A tie passes: the candidate is no worse. */
export const pairwiseEvaluator = defineEvaluator({
  name: "pairwise_preference",
  description: "Whether the output is better than the baseline's, asked in both orders.",
  inputs: ["input", "output", "baseline"],
  output: "choice",
  needsJudge: true,
  options: pairwiseOptions,
  create(options, services) {
    const judge = judgeOf(services, options.model);
    return {
      judge: judge.name,
      fingerprint: fingerprintOf(judge, options.criteria, String(options.with_reason)),
      async score(sample, { signal }) {
        const pair = {
          input: sampleText(sample, "input"),
          one: sampleText(sample, "output") ?? "",
          other: sampleText(sample, "baseline") ?? "",
        };
        if (pair.one === pair.other)
          return measured(values.tie, { label: winnerLabels.tie, reason: "the answers are the same" });
        const { winner, preferences, reasons } = await comparePair(judge, pair, options.criteria, {
          signal,
          withReason: options.with_reason,
        });
        const [reason] = reasons.filter((one) => one !== undefined);
        return measured(values[winner], {
          label: winnerLabels[winner],
          ...(reason === undefined ? {} : { reason }),
          details: { preferences },
        });
      },
    };
  },
});

/** Whether a judge prefers the answer that it is shown first. */
export interface PositionBias {
  readonly numPairs: number;
  /** Share of pairs whose orders disagree: their winner depended on the position. */
  readonly disagreement: { readonly estimate: number; readonly interval: Interval } | undefined;
  /** Share that preferred the first answer, among disagreements that chose the same position twice: 0.5 without bias. */
  readonly firstPreferred: { readonly estimate: number; readonly interval: Interval } | undefined;
}

/** How often the position decided, over scores of `pairwise_preference` or comparisons. */
export function positionBias(results: Iterable<Score | Comparison>): PositionBias {
  const tally = new PlaceTally();
  for (const result of results) tally.add(result);
  return tally.bias;
}

/** Counts how often the position decided, as scores arrive. */
export class PlaceTally {
  #numPairs = 0;
  #disagreeing = 0;
  #first = 0;
  #placed = 0;

  /** What is no comparison is not counted. */
  add(result: Score | Comparison): void {
    const preferences = "preferences" in result ? result.preferences : preferencesOf(result);
    if (preferences === undefined) return;
    this.#numPairs += 1;
    const [forward, backward] = preferences;
    const isConsistent = forward === "tie" ? backward === "tie" : backward !== "tie" && backward !== forward;
    if (!isConsistent) this.#disagreeing += 1;
    if (forward !== "tie" && forward === backward) {
      this.#placed += 1;
      if (forward === "first") this.#first += 1;
    }
  }

  get bias(): PositionBias {
    return {
      numPairs: this.#numPairs,
      disagreement: shareOf(this.#disagreeing, this.#numPairs),
      firstPreferred: shareOf(this.#first, this.#placed),
    };
  }
}

function shareOf(count: number, total: number): PositionBias["disagreement"] {
  return total === 0 ? undefined : { estimate: count / total, interval: wilsonInterval(count, total) };
}

function preferencesOf(score: Score): Comparison["preferences"] | undefined {
  if (score.status !== "scored") return undefined;
  const given = score.details?.["preferences"];
  const isPreference = (value: unknown): value is Preference =>
    value === "first" || value === "second" || value === "tie";
  if (!Array.isArray(given) || given.length !== 2) return undefined;
  const [forward, backward] = given as readonly unknown[];
  return isPreference(forward) && isPreference(backward) ? [forward, backward] : undefined;
}
