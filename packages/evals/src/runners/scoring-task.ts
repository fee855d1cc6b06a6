import { OctavoError, parseWith } from "@octavo/protocol";
import { z } from "zod";
import type { Evaluator, EvaluatorSpec, Sample } from "../evaluators/evaluator.js";

/** A pair of sample and evaluator as it travels to another process, as JSON. */
export interface ScoringTask {
  readonly version: 1;
  readonly sample: Sample;
  readonly spec: EvaluatorSpec;
  /** Fingerprint of the run's evaluator; a worker with another one would give other scores. */
  readonly fingerprint: string | null;
}

/**
 * @throws OctavoError `invalid_option` for an evaluator that only this process has
 */
export function scoringTask(sample: Sample, evaluator: Evaluator, runner: string): ScoringTask {
  if (evaluator.spec === undefined) {
    throw new OctavoError(
      "invalid_option",
      `the evaluator ${evaluator.name} was not made from the table, so that the workers of the ${runner} runner cannot make it: give it a row in a module that they load`,
    );
  }
  return { version: 1, sample, spec: evaluator.spec, fingerprint: evaluator.fingerprint ?? null };
}

const taskSchema = z.object({
  version: z.literal(1),
  // what evaluators read first; the rest is as the run's own types have it
  sample: z
    .object({
      case: z.object({ id: z.string(), messages: z.array(z.unknown()), expected: z.object({}) }).loose(),
      answer: z.object({ text: z.string(), toolCalls: z.array(z.unknown()) }).loose(),
    })
    .loose(),
  spec: z.object({ name: z.string() }).loose(),
  fingerprint: z.string().nullable(),
});

/**
 * A task as another process wrote it.
 * @throws OctavoError `runner_unavailable` when it is none of this version
 */
export function parseScoringTask(value: unknown): ScoringTask {
  try {
    parseWith(taskSchema, value);
    return value as ScoringTask;
  } catch (cause) {
    const { message } = OctavoError.from(cause);
    throw new OctavoError(
      "runner_unavailable",
      `a worker was given what is no task of its version (${message}); run the same version everywhere`,
      { cause },
    );
  }
}

/** A score that journals keep. */
export const keptScoreSchema = z.discriminatedUnion("status", [
  z.object({
    status: z.literal("scored"),
    value: z.number(),
    passed: z.boolean(),
    label: z.string().optional(),
    reason: z.string().optional(),
    details: z.record(z.string(), z.unknown()).optional(),
  }),
  z.object({ status: z.literal("skipped"), reason: z.string() }),
]);

const failedScore = z.object({ status: z.literal("failed"), code: z.string(), reason: z.string() });

/** Whether a value from another process is a score. */
export function isScore(value: unknown): boolean {
  return keptScoreSchema.or(failedScore).safeParse(value).success;
}
