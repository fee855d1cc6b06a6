import { OctavoError } from "@octavo/protocol";
import type { Evaluator, Sample } from "../evaluators/evaluator.js";
import type { ScoredCase } from "./runner.js";

/** One pair's score; an evaluator that throws in spite of its contract has failed, and the run goes on. */
export async function scorePair(
  sample: Sample,
  evaluator: Evaluator,
  signal: AbortSignal,
): Promise<ScoredCase> {
  const pair = { caseId: sample.case.id, evaluator: evaluator.name };
  try {
    return { ...pair, score: await evaluator.evaluate(sample, { signal }) };
  } catch (thrown) {
    signal.throwIfAborted();
    const { code, message } = OctavoError.from(thrown);
    return { ...pair, score: { status: "failed", code, reason: message } };
  }
}
