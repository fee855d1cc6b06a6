import { quantile } from "@octavo/statistics";
import type { RuleOfThumb } from "../check.js";
import type { Observation } from "../observation.js";
import { evaluatorsOf } from "../judging/pairs.js";
import { rounded, roundedMean } from "../judging/rounded.js";

const saturationBuckets = ["idle", "warm", "saturating", "scaling"] as const;
type SaturationBucket = (typeof saturationBuckets)[number];

interface SaturationLimits {
  readonly warmFrom: number;
  readonly saturatingFrom: number;
  readonly scalingFrom: number;
}

/** The published bucket: queue depth over replicas when the request landed; undefined where a span says neither. */
function saturationOf(
  { queueDepth, replicaCount }: Observation,
  limits: SaturationLimits,
): SaturationBucket | undefined {
  if (queueDepth === undefined || replicaCount === undefined) return undefined;
  const saturation = queueDepth / Math.max(replicaCount, 1);
  if (saturation < limits.warmFrom) return "idle";
  if (saturation < limits.saturatingFrom) return "warm";
  return saturation < limits.scalingFrom ? "saturating" : "scaling";
}

/** What the guide allows a tenant is what a bucket may lose here, since the guide gives its curve without a threshold. */
const lossThatTrips = 0.05;
/** "p99 latency triples for 30 to 60 seconds." */
const slowdownThatTrips = 3;

export function saturationRule(observations: readonly Observation[], limits: SaturationLimits): RuleOfThumb {
  const evaluators = evaluatorsOf(observations);
  const rows = saturationBuckets.map((bucket) => {
    const own = observations.filter((seen) => saturationOf(seen, limits) === bucket);
    return {
      bucket,
      count: own.length,
      p99Ms:
        own.length === 0
          ? null
          : quantile(
              own.map(({ durationMs }) => durationMs),
              0.99,
            ),
      scores: evaluators.map((evaluator) =>
        roundedMean(own.flatMap(({ scores }) => scores[evaluator] ?? [])),
      ),
    };
  });
  const [idle, ...busy] = rows;
  const tripped = busy.some(
    ({ p99Ms, scores }) =>
      (p99Ms !== null && idle!.p99Ms !== null && p99Ms >= slowdownThatTrips * idle!.p99Ms) ||
      scores.some((score, index) => {
        const before = idle!.scores[index];
        return typeof score === "number" && typeof before === "number" && before - score > lossThatTrips;
      }),
  );
  const { warmFrom, saturatingFrom, scalingFrom } = limits;
  return {
    rule: `saturation is queue depth over replicas when the request landed: below ${warmFrom} idle, below ${saturatingFrom} warm, below ${scalingFrom} saturating, else scaling; published are Groundedness .88/.86/.79/.71 and a p99 that triples, without a threshold: tripped by a loss of 5 points or three times the p99 of idle`,
    tripped,
    columns: ["saturation", "requests", "p99 ms", ...evaluators],
    rows: rows.map(({ bucket, count, p99Ms, scores }) => [bucket, count, rounded(p99Ms, 1), ...scores]),
  };
}
