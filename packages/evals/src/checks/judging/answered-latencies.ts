import type { Observation } from "../observation.js";

/** Largest share of failed requests on the side that others are compared with; beyond it no comparison is made. */
const mostFailedShare = 0.05;

export type Latency = (seen: Observation) => number | undefined;

/**
 * A latency of one condition's requests. One that failed counts only where it lasted longer than every answer took: so long a
 * client waited in vain. A refusal that comes at once is no quick answer; that it came is for the share of failures to judge.
 */
export function answeredLatency(observations: readonly Observation[], of: Latency): Latency {
  const slowestMs = observations.reduce(
    (most, seen) => (seen.failureCode === undefined ? Math.max(most, of(seen) ?? 0) : most),
    0,
  );
  const hasAnswers = observations.some((seen) => seen.failureCode === undefined && of(seen) !== undefined);
  return (seen) => {
    const ms = of(seen);
    if (seen.failureCode === undefined) return ms;
    const waitedMs = ms ?? seen.durationMs;
    return hasAnswers && waitedMs > slowestMs ? waitedMs : undefined;
  };
}

/**
 * Why latencies cannot be held against these requests; undefined where they can.
 *
 * @param when under which condition they were sent, such as "when idle"
 */
export function tooManyFailed(reference: readonly Observation[], when: string): string | undefined {
  const failed = reference.filter(({ failureCode }) => failureCode !== undefined).length;
  if (failed <= mostFailedShare * reference.length) return undefined;
  return `${failed} of ${reference.length} requests failed ${when}: with more than ${100 * mostFailedShare} % of them nothing says how long answers take there, so waiting is not judged.`;
}
