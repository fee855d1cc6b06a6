import type { FailureKind, RequestOutcome } from "../load/outcome.js";
import { type Distribution, type LoadEstimate, proportion, summarize } from "../statistics/quantiles.js";

/** Bounds a request must meet to count towards goodput, ms. */
export interface GoodputBounds {
  readonly ttft?: number;
  readonly tpot?: number;
  readonly e2e?: number;
  /** Longest gap of the request. */
  readonly maxGap?: number;
}

/** Everything measured in one run. Times in ms, rates per second of the run. */
export interface LoadSummary {
  readonly durationSeconds: number;
  readonly requests: number;
  readonly completed: number;
  readonly failures: Readonly<Partial<Record<FailureKind, number>>>;
  /** One message of each kind. */
  readonly failureExamples: Readonly<Partial<Record<FailureKind, string>>>;
  readonly successRate: LoadEstimate;
  readonly promptTokens: number;
  readonly cachedTokens: number;
  readonly outputTokens: number;
  readonly requestsPerSecond: number;
  readonly outputTokensPerSecond: number;
  readonly totalTokensPerSecond: number;
  readonly maxConcurrency: number;
  /** How late the load generator itself was; above a few ms its own machine is the bottleneck. */
  readonly sendDelayMs: Distribution | undefined;
  /** From the scheduled time, so that a late start counts against the server and not in its favour. */
  readonly ttftMs: Distribution | undefined;
  /** Every gap between consecutive pieces of output. */
  readonly interTokenMs: Distribution | undefined;
  /** The longest gap of each request. */
  readonly maxGapMs: Distribution | undefined;
  /** (end to end - TTFT) / (output tokens - 1), one per request. */
  readonly tpotMs: Distribution | undefined;
  readonly e2eMs: Distribution | undefined;
  readonly goodput:
    | { readonly bounds: GoodputBounds; readonly requestsPerSecond: number; readonly share: LoadEstimate }
    | undefined;
}

interface Timing {
  readonly ttft: number;
  readonly gaps: readonly number[];
  readonly maxGap: number | undefined;
  readonly tpot: number | undefined;
  readonly e2e: number;
}

export function summarizeRun(outcomes: readonly RequestOutcome[], bounds?: GoodputBounds): LoadSummary {
  const completed = outcomes.filter((outcome) => outcome.failure === undefined);
  const began = Math.min(...outcomes.map((outcome) => Math.min(outcome.sentMs, outcome.scheduledMs)));
  const ended = Math.max(...outcomes.map((outcome) => outcome.endedMs));
  const seconds = outcomes.length === 0 ? 0 : Math.max(ended - began, 1e-6) / 1000;
  const timings = completed.map(timingOf).filter((timing) => timing !== undefined);
  const total = (pick: (outcome: RequestOutcome) => number | undefined) =>
    completed.reduce((sum, outcome) => sum + (pick(outcome) ?? 0), 0);
  const outputTokens = total((outcome) => outcome.completionTokens);
  const promptTokens = total((outcome) => outcome.promptTokens);
  const single = (values: readonly (number | undefined)[]) =>
    summarize(values.filter((value) => value !== undefined).map((value) => [value]));
  const good = bounds ? timings.filter((timing) => meets(timing, bounds)).length : 0;

  return {
    durationSeconds: seconds,
    requests: outcomes.length,
    completed: completed.length,
    ...failuresOf(outcomes),
    successRate: proportion(completed.length, outcomes.length),
    promptTokens,
    cachedTokens: total((outcome) => outcome.cachedTokens),
    outputTokens,
    requestsPerSecond: completed.length / seconds,
    outputTokensPerSecond: outputTokens / seconds,
    totalTokensPerSecond: (outputTokens + promptTokens) / seconds,
    maxConcurrency: maxConcurrency(outcomes),
    sendDelayMs: single(outcomes.map((outcome) => Math.max(0, outcome.sentMs - outcome.scheduledMs))),
    ttftMs: single(timings.map((timing) => timing.ttft)),
    interTokenMs: summarize(timings.map((timing) => timing.gaps)),
    maxGapMs: single(timings.map((timing) => timing.maxGap)),
    tpotMs: single(timings.map((timing) => timing.tpot)),
    e2eMs: single(timings.map((timing) => timing.e2e)),
    goodput: bounds && {
      bounds,
      requestsPerSecond: good / seconds,
      share: proportion(good, outcomes.length),
    },
  };
}

function timingOf(outcome: RequestOutcome): Timing | undefined {
  const first = outcome.pieceMs[0];
  if (first === undefined) return undefined;
  const last = outcome.pieceMs.at(-1) ?? first;
  const gaps = outcome.pieceMs.slice(1).map((at, index) => at - (outcome.pieceMs[index] ?? at));
  return {
    ttft: first - outcome.scheduledMs,
    gaps,
    maxGap: gaps.length === 0 ? undefined : Math.max(...gaps),
    tpot: outcome.completionTokens > 1 ? (last - first) / (outcome.completionTokens - 1) : undefined,
    e2e: outcome.endedMs - outcome.scheduledMs,
  };
}

function meets(timing: Timing, bounds: GoodputBounds): boolean {
  return (
    (bounds.ttft === undefined || timing.ttft <= bounds.ttft) &&
    (bounds.tpot === undefined || (timing.tpot ?? 0) <= bounds.tpot) &&
    (bounds.e2e === undefined || timing.e2e <= bounds.e2e) &&
    (bounds.maxGap === undefined || (timing.maxGap ?? 0) <= bounds.maxGap)
  );
}

function failuresOf(outcomes: readonly RequestOutcome[]): Pick<LoadSummary, "failures" | "failureExamples"> {
  const failures: Partial<Record<FailureKind, number>> = {};
  const failureExamples: Partial<Record<FailureKind, string>> = {};
  for (const { failure } of outcomes) {
    if (!failure) continue;
    failures[failure.kind] = (failures[failure.kind] ?? 0) + 1;
    failureExamples[failure.kind] ??= failure.message;
  }
  return { failures, failureExamples };
}

function maxConcurrency(outcomes: readonly RequestOutcome[]): number {
  const edges = outcomes.flatMap((outcome) => [
    { at: outcome.sentMs, change: 1 },
    { at: outcome.endedMs, change: -1 },
  ]);
  let now = 0;
  let most = 0;
  for (const edge of edges.toSorted((a, b) => a.at - b.at || a.change - b.change)) {
    now += edge.change;
    most = Math.max(most, now);
  }
  return most;
}
