import { OctavoError } from "@octavo/protocol";
import { type Interval, mean, meanInterval, newcombeDifference } from "@octavo/statistics";
import type { RecordedWorkload } from "./recorded-workload.js";
import { type ClusterMeasures, pairOf, type ReplayMeasure } from "./measures.js";
import type { ReplayRun } from "./replay-on-server.js";

/** One replay without and one with the patch, the one right after the other. */
export interface ReplayPair {
  readonly before: ReplayRun;
  readonly after: ReplayRun;
}

/** A measure without and with the patch. */
export interface MeasuredChange {
  readonly measure: string;
  readonly unit: ReplayMeasure["unit"];
  readonly before: number;
  readonly after: number;
  /** Of milliseconds the relative change, of shares the difference; below 0 is better. */
  readonly change: number;
  readonly interval: Interval | undefined;
}

export interface FixVerdict {
  readonly verdict: "accepted" | "rejected" | "inconclusive";
  readonly reason: string;
  readonly target: MeasuredChange | undefined;
  /** And what was measured beside them. */
  readonly guards: readonly MeasuredChange[];
}

/** What a patch must reach to be accepted, and what it may cost. */
export interface FixStandard {
  /** The measure must fall by this share of what it was. Default 0.1. */
  readonly leastImprovement?: number;
  /**
   * Guards may rise by this share (of milliseconds) or a tenth of it (shares of requests). Default 0.25. Milliseconds that are few
   * beside those that are won do not count either: this share of them.
   */
  readonly guardMargin?: number;
  /** Of the two-sided intervals. Default 0.99. */
  readonly confidence?: number;
}

export const usualConfidence = 0.99;

/** With two pairs an interval at 99 % is as wide as anything. */
export const fewestPairs = 3;

/**
 * Accepted: the measure falls by `leastImprovement` or more, its interval excludes no change, and no guard's estimate is beyond its
 * margin, nor may double by an interval of 90 %. Rejected: the interval excludes such an improvement, or a guard's interval lies beyond its margin. Else inconclusive.
 *
 * Requests of one replay wait for each other, so the pair of replays is the unit: Student's interval over the pairs, of the log ratio
 * for milliseconds. Shares can be equal in all pairs, which is no certainty: their interval is at least Newcombe's for the requests
 * of all replays.
 */
export function judgeFix(
  { target, guards, reported }: ClusterMeasures,
  pairs: readonly ReplayPair[],
  { requests }: Pick<RecordedWorkload, "requests">,
  { leastImprovement = 0.1, guardMargin = 0.25, confidence = usualConfidence }: FixStandard = {},
): FixVerdict {
  if (pairs.length < fewestPairs)
    throw new OctavoError(
      "invalid_option",
      `repeats is ${pairs.length}; at least ${fewestPairs} are needed`,
      {
        param: "repeats",
      },
    );
  const ofCluster = (index: number): boolean => requests[index]?.isOfCluster === true;
  const main = changeOf(target, pairs, ofCluster, confidence);
  const changesOf = (measures: readonly ReplayMeasure[], level = confidence) =>
    measures.flatMap((measure) => changeOf(measure, pairs, () => true, level) ?? []);
  const others = changesOf(guards);
  const shown = [...others, ...changesOf(reported)];
  const verdict = (said: FixVerdict["verdict"], reason: string): FixVerdict => ({
    verdict: said,
    reason,
    target: main,
    guards: shown,
  });
  if (main === undefined)
    return verdict("inconclusive", `no request of the cluster has ${target.name} in both replays`);
  if (main.before === 0) return verdict("inconclusive", "the replay does not show the problem");
  const wonMs = main.unit === "ms" ? Math.max(0, main.before - main.after) : 0;
  const marginOf = ({ unit, before }: MeasuredChange): number =>
    unit === "ms" ? Math.max(guardMargin, (guardMargin * wonMs) / before) : guardMargin / 10;
  const beyond = others.filter((guard) => guard.change > marginOf(guard));
  const worse = beyond.find((guard) => (guard.interval?.[0] ?? -Infinity) > marginOf(guard));
  if (worse !== undefined) return verdict("rejected", `it makes ${worse.measure} worse`);
  const wanted = -leastImprovement * (main.unit === "ms" ? 1 : main.before);
  const [low, high] = main.interval ?? [-Infinity, Infinity];
  if (low > wanted)
    return verdict("rejected", `${main.measure} does not fall by ${percent(leastImprovement)}`);
  if (high >= 0 || main.change > wanted)
    return verdict("inconclusive", `the replays do not settle whether ${main.measure} falls`);
  const [unsure] = [
    ...beyond,
    ...changesOf(guards, guardConfidence).filter((guard) => mayDouble(guard, marginOf(guard))),
  ];
  if (unsure !== undefined)
    return verdict("inconclusive", `${unsure.measure} may be worse with it; more replays would tell`);
  return verdict("accepted", `${main.measure} falls, and nothing else that was measured gets worse`);
}

/** Of the interval by which a guard is shown not to double, or a share not to rise by ten points. */
const guardConfidence = 0.9;

function mayDouble({ unit, change, interval }: MeasuredChange, margin: number): boolean {
  // a share that did not rise in any pair has an interval as wide as one replay's requests make it
  return unit === "ms"
    ? (interval?.[1] ?? Infinity) > Math.max(1, margin)
    : change > 0 && (interval?.[1] ?? 1) > 0.1;
}

/** Undefined where some pair has no request with the measure on both sides. */
function changeOf(
  measure: ReplayMeasure,
  pairs: readonly ReplayPair[],
  among: (index: number) => boolean,
  confidence: number,
): MeasuredChange | undefined {
  const each = pairs.flatMap(
    ({ before, after }) => pairOf(measure, before.observations, after.observations, among) ?? [],
  );
  if (each.length < pairs.length) return undefined;
  const { name, unit } = measure;
  if (unit === "ms") {
    const logs = each.map(({ before, after }) => Math.log(after / before));
    const { estimate, interval } = meanInterval(logs, confidence);
    const ratio = (log: number): number => Math.exp(log) - 1;
    const level = (side: "before" | "after"): number =>
      Math.exp(mean(each.map((one) => Math.log(one[side]))));
    return {
      measure: name,
      unit,
      before: level("before"),
      after: level("after"),
      change: ratio(estimate),
      interval:
        interval === undefined
          ? exactly(logs) && [ratio(estimate), ratio(estimate)]
          : [ratio(interval[0]), ratio(interval[1])],
    };
  }
  const before = mean(each.map((one) => one.before));
  const after = mean(each.map((one) => one.after));
  const across = meanInterval(
    each.map((one) => one.after - one.before),
    confidence,
  ).interval ?? [after - before, after - before];
  const size = pairs.reduce(
    (sum, pair) =>
      sum +
      pair.before.observations.filter(
        (observation, index) => among(index) && measure.of(observation) !== undefined,
      ).length,
    0,
  );
  const count = (share: number): { readonly successes: number; readonly trials: number } => ({
    successes: Math.round(share * size),
    trials: size,
  });
  const within = newcombeDifference(count(after), count(before), confidence).interval;
  return {
    measure: name,
    unit,
    before,
    after,
    change: after - before,
    interval: [Math.min(across[0], within[0]), Math.max(across[1], within[1])],
  };
}

/** A patch that changes nothing at all, in virtual time. */
function exactly(logs: readonly number[]): true | undefined {
  return logs.every((log) => log === logs[0]) ? true : undefined;
}

function percent(share: number): string {
  return `${Math.round(1000 * share) / 10} %`;
}
