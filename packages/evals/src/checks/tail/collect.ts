import { OctavoError } from "@octavo/protocol";
import type { Evaluator } from "../../evaluators/evaluator.js";
import type { TestBed } from "../test-bed.js";
import { scorePair } from "../../runners/score-pair.js";
import type { Observation } from "../observation.js";
import type { TailSettings } from "./settings.js";
import { agreementWith, type ExpectedWord } from "./agreement.js";
import { type CasePlan, collectCases, type SentRequest } from "../collecting/collect-cases.js";
import { type AnswerPart, splitAnswer, tokenOffsets } from "./split-answer.js";

type Part = NonNullable<Observation["parts"]>[number];

/** The share of the reference's words that an answer has, part by part. */
const agreement = "reference_agreement";

/**
 * Every case once, its answer scored part by part: against the reference where the case has one, and by the evaluators that
 * the settings name. Places are counted in tokens: those of the answer's logprobs, else spread evenly over its usage.
 */
export async function collectTail(bed: TestBed, settings: TailSettings): Promise<readonly Observation[]> {
  const evaluators = settings.partEvaluators.map((name) => {
    const found = bed.evaluators.find((evaluator) => evaluator.name === name);
    if (found === undefined)
      throw new OctavoError(
        "invalid_option",
        `tail.part_evaluators: there is no evaluator ${JSON.stringify(name)} in this run; there are ${bed.evaluators.map((one) => one.name).join(", ")}`,
        { param: "tail.part_evaluators" },
      );
    return found;
  });
  const plans = bed.cases.map((evalCase): CasePlan => ({
    evalCase,
    requests: [{ condition: settings.condition, target: bed.candidate }],
  }));
  return collectCases(plans, {
    bed,
    purpose: `tail with slices ${JSON.stringify([settings.partTokens, settings.outputEdges, settings.partEvaluators])}`,
    concurrency: settings.concurrency,
    wantsTokens: true,
    complete: async (observation, sent) => {
      if (sent.answer.failure !== undefined) return observation;
      const { parts, slices, failed } = await partsOf(sent, evaluators, settings, bed.signal);
      return {
        ...observation,
        ...(parts.length === 0 ? {} : { parts, slices }),
        ...(failed.length === 0 ? {} : { failedScores: [...(observation.failedScores ?? []), ...failed] }),
      };
    },
  });
}

interface Scored {
  readonly parts: readonly Part[];
  readonly slices: readonly Part[];
  /** Evaluators, once for each text that they failed to score. */
  readonly failed: readonly string[];
}

async function partsOf(
  { evalCase, answer }: SentRequest,
  evaluators: readonly Evaluator[],
  { partTokens, outputEdges }: TailSettings,
  signal: AbortSignal,
): Promise<Scored> {
  const { text, tokens, usage } = answer;
  const offsets = tokenOffsets(text, tokens, usage.completionTokens ?? tokens?.length ?? 1);
  const [reference] = evalCase.expected.outputs ?? [];
  const words = reference === undefined ? undefined : agreementWith(reference, text, offsets);
  const failed: string[] = [];
  const scoreAll = async (texts: readonly AnswerPart[], known: readonly Part[]): Promise<readonly Part[]> => {
    const scored: Part[] = [];
    for (const evaluator of evaluators) {
      for (const { text: own, fromToken, toToken } of texts) {
        const same = known.find(
          (one) => one.evaluator === evaluator.name && one.fromToken === fromToken && one.toToken === toToken,
        );
        if (same !== undefined) {
          scored.push(same);
          continue;
        }
        const sample = { case: evalCase, answer: { ...answer, text: own } };
        const { score } = await scorePair(sample, evaluator, signal);
        if (score.status === "failed") failed.push(evaluator.name);
        if (score.status === "scored")
          scored.push({ evaluator: evaluator.name, fromToken, toToken, value: score.value });
      }
    }
    return [...scored, ...agreementsOf(texts, words ?? [])];
  };
  const parts = await scoreAll(splitAnswer(text, offsets, partTokens, outputEdges), []);
  const slices = await scoreAll(splitAnswer(text, offsets, Infinity, outputEdges), parts);
  return { parts, slices, failed };
}

function agreementsOf(texts: readonly AnswerPart[], words: readonly ExpectedWord[]): readonly Part[] {
  return texts.flatMap(({ fromToken, toToken }) => {
    const own = words.filter(({ token }) => token >= fromToken && token < toToken);
    if (own.length === 0) return [];
    const value = own.filter(({ isThere }) => isThere).length / own.length;
    return [{ evaluator: agreement, fromToken, toToken, value }];
  });
}
