import { concurrently } from "../../runners/concurrently.js";
import { scorePair } from "../../runners/score-pair.js";
import type { Score } from "../../evaluators/evaluator.js";
import type { TestBed } from "../test-bed.js";
import type { Observation } from "../observation.js";
import { observationFromAnswer } from "./from-answer.js";
import type { SentCase } from "./open-loop.js";

export interface SentUnder extends SentCase {
  readonly condition: string;
  readonly tags?: readonly string[];
}

const concurrentScores = 8;

/** Observations of the sent requests, in order; scored only now, since scoring during the load would distort timings. */
export async function observeSent(
  sent: readonly SentUnder[],
  { evaluators, signal }: Pick<TestBed, "evaluators" | "signal">,
): Promise<readonly Observation[]> {
  const observations = new Map<number, Observation>();
  const work = async (index: number, own: AbortSignal): Promise<readonly [number, Observation]> => {
    const { scheduled, answer, condition, tags } = sent[index]!;
    const { evalCase, tenant } = scheduled;
    const scores: Record<string, Score> = {};
    // nobody asked what a failed request would have said
    for (const evaluator of answer.failure === undefined ? evaluators : [])
      scores[evaluator.name] = (await scorePair({ case: evalCase, answer }, evaluator, own)).score;
    const under = { condition, evalCase, scores, tenant, ...(tags === undefined ? {} : { tags }) };
    return [index, observationFromAnswer(answer, under)];
  };
  for await (const [index, observation] of concurrently(sent.keys(), concurrentScores, work, signal))
    observations.set(index, observation);
  return sent.flatMap((_, index) => observations.get(index) ?? []);
}
