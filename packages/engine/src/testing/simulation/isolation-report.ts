import { requestsOf, type SimulatedRequest, type TenantLoad, together } from "./load.js";
import { simulate, type SimulatedOutcome, type SimulationOptions } from "./simulate.js";

/** A small and a large tenant on one engine. */
export interface IsolationCase {
  readonly name: string;
  readonly small: TenantLoad;
  readonly large: TenantLoad;
  readonly durationMs: number;
  readonly seeds: readonly number[];
  readonly engine: Omit<SimulationOptions, "policy">;
}

/** Latency of the small tenant beside the large one: ratios of 99th percentiles, medians over the seeds. */
export interface IsolationReport {
  readonly policy: SimulationOptions["policy"];
  /** Relative to the same requests alone on the engine. */
  readonly firstTokenToSolo: number;
  readonly e2eToSolo: number;
  /** Relative to all requests, the large tenant's included. */
  readonly e2eToAggregate: number;
  /** Relative to first-come, first-served. */
  readonly throughputToFirstCome: number;
  /** Fraction of time in which first-come, first-served computes. */
  readonly utilization: number;
  readonly preemptions: number;
}

/** Runs a case under each policy, and under first-come for comparison. */
export function isolationReports(
  { small, large, durationMs, seeds, engine }: IsolationCase,
  policies: readonly SimulationOptions["policy"][],
): readonly IsolationReport[] {
  const runs = seeds.map((seed) => {
    const ofSmall = requestsOf(small, durationMs, seed);
    const all = together(ofSmall, requestsOf(large, durationMs, seed + 7919));
    const firstCome = simulate(all, { ...engine, policy: "fcfs" });
    const solo = simulate(ofSmall, { ...engine, policy: "fcfs" });
    return { all, firstCome, solo };
  });
  return policies.map((policy) => {
    const each = runs.map(({ all, firstCome, solo }) => {
      const run = policy === "fcfs" ? firstCome : simulate(all, { ...engine, policy });
      const ofSmall = run.outcomes.filter(({ tenant }) => tenant === small.account.tenant);
      return {
        policy,
        firstTokenToSolo: p99(ofSmall, "firstTokenMs") / p99(solo.outcomes, "firstTokenMs"),
        e2eToSolo: p99(ofSmall, "e2eMs") / p99(solo.outcomes, "e2eMs"),
        e2eToAggregate: p99(ofSmall, "e2eMs") / p99(run.outcomes, "e2eMs"),
        throughputToFirstCome: throughput(all, run.busyMs) / throughput(all, firstCome.busyMs),
        utilization: firstCome.busyMs / firstCome.endMs,
        preemptions: run.numPreemptions,
      };
    });
    const medianOf = (key: Exclude<keyof IsolationReport, "policy">): number =>
      median(each.map((report) => report[key]));
    return {
      policy,
      firstTokenToSolo: medianOf("firstTokenToSolo"),
      e2eToSolo: medianOf("e2eToSolo"),
      e2eToAggregate: medianOf("e2eToAggregate"),
      throughputToFirstCome: medianOf("throughputToFirstCome"),
      utilization: medianOf("utilization"),
      preemptions: medianOf("preemptions"),
    };
  });
}

/** Requested tokens per ms of computing. */
function throughput(requests: readonly SimulatedRequest[], ms: number): number {
  return requests.reduce((sum, { promptTokens, outputTokens }) => sum + promptTokens + outputTokens, 0) / ms;
}

function p99(outcomes: readonly SimulatedOutcome[], key: "firstTokenMs" | "e2eMs"): number {
  const sorted = outcomes.map((outcome) => outcome[key]).sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(0.99 * sorted.length) - 1)] ?? Number.NaN;
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? Number.NaN;
}
