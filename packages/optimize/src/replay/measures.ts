import { factNames, type Observation } from "@octavo/evals";
import { groupBy } from "@octavo/protocol";
import { mean } from "@octavo/statistics";

/** A figure of each request of a replay; less is better. */
export interface ReplayMeasure {
  readonly name: string;
  /** `ms`: changes are ratios. `share`: of requests, changes are differences. */
  readonly unit: "ms" | "share";
  /** Undefined where the request has none, such as the first token of one that was refused. */
  of(observation: Observation): number | undefined;
}

const failed: ReplayMeasure = {
  name: "failed",
  unit: "share",
  of: ({ failureCode }) => Number(failureCode !== undefined),
};
const firstToken: ReplayMeasure = { name: "first token", unit: "ms", of: ({ firstTokenMs }) => firstTokenMs };
const longestGap: ReplayMeasure = {
  name: "longest gap",
  unit: "ms",
  of: ({ gapsMs, gapSummary }) => (gapsMs.length > 0 ? Math.max(...gapsMs) : gapSummary?.maxMs),
};
const cutOff: ReplayMeasure = {
  name: "cut off",
  unit: "share",
  of: ({ failureCode, finishReason }) =>
    failureCode === undefined ? Number(finishReason === "length") : undefined,
};

/** Answers that an evaluator fails; no score is no figure. */
function scoredBelow(evaluator: string, passScore: number): ReplayMeasure {
  return {
    name: `failed by ${evaluator}`,
    unit: "share",
    of: ({ scores }) => {
      const score = scores[evaluator];
      return typeof score === "number" ? Number(score < passScore) : undefined;
    },
  };
}

const gapFields: ReadonlySet<string> = new Set(
  [...factNames.gapMaxMs, ...factNames.slowGapMs].map((name) =>
    typeof name === "string" ? name : name.seconds,
  ),
);

/** What of a cluster says what it is about. */
interface MeasuredCluster {
  readonly kind: string;
  readonly cause: string;
  readonly quotes: readonly { readonly field: string; readonly text: string }[];
}

export interface ClusterMeasures {
  /** What the cluster is about. */
  readonly target: ReplayMeasure;
  /** What a fix of it must not make worse. */
  readonly guards: readonly ReplayMeasure[];
  /** What is shown and decides nothing: that requests which are served at last, or answered rightly, take time. */
  readonly reported: readonly ReplayMeasure[];
}

/** What a replay measures to prove a fix of a cluster: its own finding first, then what must not become worse. */
export function measuresOf(
  { kind, cause, quotes }: MeasuredCluster,
  evaluators: readonly string[],
  passScore: number,
): ClusterMeasures {
  const scored = evaluators.map((name) => scoredBelow(name, passScore));
  const target =
    kind === "request"
      ? failed
      : kind === "serving"
        ? quotes.some(({ field, text }) => gapFields.has(field) || text === "decode_latency")
          ? longestGap
          : firstToken
        : cause === "cut_off"
          ? cutOff
          : scoredBelow(cause, passScore);
  const others = (measures: readonly ReplayMeasure[]) => measures.filter(({ name }) => name !== target.name);
  const timed = others([firstToken, longestGap]);
  const isSlow = kind === "serving";
  return {
    target,
    guards: others([failed, ...(isSlow ? timed : []), ...scored]),
    reported: isSlow ? [] : timed,
  };
}

/**
 * A measure before and after in one pair of replays: over requests that have it in both, each tenant counting alike, so that a fix for
 * a small one is not hidden by a large one. Undefined where no request has it in both.
 */
export function pairOf(
  measure: ReplayMeasure,
  before: readonly Observation[],
  after: readonly Observation[],
  among: (index: number) => boolean,
): { readonly before: number; readonly after: number } | undefined {
  const pairs = before.flatMap((observation, index) => {
    const later = after[index];
    const [was, is] = [measure.of(observation), later && measure.of(later)];
    return was === undefined || is === undefined || !among(index)
      ? []
      : [{ tenant: observation.tenant ?? "", was, is }];
  });
  if (pairs.length === 0) return undefined;
  const byTenant = [...groupBy(pairs, ({ tenant }) => tenant).values()].map((own) => ({
    was: mean(own.map(({ was }) => was)),
    is: mean(own.map(({ is }) => is)),
  }));
  const over = measure.unit === "ms" ? geometricMean : mean;
  return { before: over(byTenant.map(({ was }) => was)), after: over(byTenant.map(({ is }) => is)) };
}

/** Of what takes no time at all, the resolution of a clock. */
const leastMs = 0.01;

function geometricMean(values: readonly number[]): number {
  return Math.exp(mean(values.map((value) => Math.log(Math.max(leastMs, value)))));
}
