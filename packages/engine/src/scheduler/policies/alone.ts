import type { Sequence } from "../sequence.js";
import type { SchedulingPolicy } from "./scheduling-policy.js";

/** Plans steps of one request's sequences alone; all others are preempted. */
export function alone(sequences: readonly Sequence[]): Pick<SchedulingPolicy, "decodes" | "planPrompts"> {
  return {
    decodes: (running) => running.filter((sequence) => sequences.includes(sequence) && sequence.isDecoding),
    planPrompts(step) {
      const [first] = sequences;
      if (first === undefined) return;
      for (const other of step.running.filter((sequence) => !sequences.includes(sequence)))
        step.preempt(other, first);
      for (const sequence of step.running.slice()) {
        if (sequence.numScheduled === 0) step.give(sequence, Number.POSITIVE_INFINITY);
      }
      step.beginAdmission();
      for (const sequence of sequences) {
        if (sequence.status !== "waiting" || step.promptRoom === 0 || step.running.length >= step.maxNumSeqs)
          continue;
        step.admit(sequence, Number.POSITIVE_INFINITY);
      }
    },
  };
}
