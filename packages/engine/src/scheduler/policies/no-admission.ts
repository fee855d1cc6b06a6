import type { SchedulingPolicy } from "./scheduling-policy.js";

/** Plans steps of the running sequences; none is admitted. */
export const noAdmission: Pick<SchedulingPolicy, "decodes" | "planPrompts"> = {
  decodes: (running, maxNumBatchedTokens) =>
    running.filter((sequence) => sequence.isDecoding).slice(0, maxNumBatchedTokens),
  planPrompts(step) {
    for (const sequence of step.running.slice())
      if (sequence.numScheduled === 0 && !sequence.isDecoding) step.give(sequence, Number.POSITIVE_INFINITY);
  },
};
