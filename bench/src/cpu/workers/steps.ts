import type { StepRecord } from "@octavo/engine";
import { OctavoError } from "@octavo/protocol/errors";

export interface FullSteps {
  readonly count: number;
  /** From the start of the first to the start of the step after the last: whatever stands between steps counts. */
  readonly wallMs: number;
  readonly computeMs: number;
}

/** Steps at the start of a stretch that are left out: the first decode step of a stream meets cold scratch memory. */
export const WARM_UP = 2;

/** Steps at the end in which all streams decode and nothing else runs. */
export function numFullSteps(steps: readonly StepRecord[], streams: number): number {
  return steps.length - 1 - steps.findLastIndex((step) => !isFull(step, streams));
}

/**
 * The longest stretch of steps in which all streams decode and nothing else runs, at most `wanted` steps of it.
 * @throws OctavoError `internal_error` where there is none
 */
export function fullSteps(steps: readonly StepRecord[], streams: number, wanted: number): FullSteps {
  let best: readonly StepRecord[] = [];
  let stretch: StepRecord[] = [];
  for (const step of steps) {
    if (isFull(step, streams)) stretch.push(step);
    else stretch = [];
    if (stretch.length > best.length) best = [...stretch];
  }
  const counted = best.slice(Math.min(WARM_UP, best.length - 2), WARM_UP + wanted + 1);
  const [first, last] = [counted[0], counted.at(-1)];
  if (first === undefined || last === undefined || counted.length < 2) {
    throw new OctavoError("internal_error", `no two steps in a row decoded all ${streams} streams`);
  }
  return {
    count: counted.length - 1,
    wallMs: last.startMs - first.startMs,
    computeMs: counted.slice(0, -1).reduce((sum, step) => sum + step.computeMs, 0),
  };
}

function isFull(step: StepRecord, streams: number): boolean {
  return step.prefillTokens === 0 && step.decodeTokens === streams;
}
