import { type ClusterOutcome, type ClusterSimulation, simulateCluster } from "./simulate-cluster.js";
import type { CallTimes } from "./simulated-replica.js";

/** What a request must keep to be within the objective. */
export interface Objective {
  readonly firstTokenMs: number;
  readonly tokenMs: number;
}

export interface SimulationReport {
  readonly numCalls: number;
  readonly numRefused: number;
  readonly durationS: number;
  readonly requestsPerSecond: number;
  readonly outputTokensPerSecond: number;
  readonly replicaSeconds: number;
  readonly peakReplicas: number;
  readonly firstTokenMs: LatencyPercentiles;
  readonly tokenMs: LatencyPercentiles;
  /** Share of all calls, refused ones included, within the objective. */
  readonly attainment: number;
}

export interface LatencyPercentiles {
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
}

export function reportOf(outcome: ClusterOutcome, objective: Objective): SimulationReport {
  const { outcomes, numRefused, replicaSeconds, peakReplicas, endS } = outcome;
  const first = new Float64Array(outcomes.length);
  const tokens: number[] = [];
  let kept = 0;
  let numTokens = 0;
  for (const [at, one] of outcomes.entries()) {
    const firstMs = firstTokenMsOf(one);
    const tokenMs = tokenMsOf(one);
    first[at] = firstMs;
    if (tokenMs !== undefined) tokens.push(tokenMs);
    if (firstMs <= objective.firstTokenMs && (tokenMs ?? 0) <= objective.tokenMs) kept += 1;
    numTokens += one.call.outputTokens;
  }
  const numCalls = outcomes.length + numRefused;
  return {
    numCalls,
    numRefused,
    durationS: endS,
    requestsPerSecond: outcomes.length / endS,
    outputTokensPerSecond: numTokens / endS,
    replicaSeconds,
    peakReplicas,
    firstTokenMs: percentilesOf(first.toSorted()),
    tokenMs: percentilesOf(Float64Array.from(tokens).toSorted()),
    attainment: numCalls === 0 ? 1 : kept / numCalls,
  };
}

export function firstTokenMsOf({ call, firstTokenS }: CallTimes): number {
  return (firstTokenS - call.atS) * 1000;
}

/** Time per output token after the first; undefined of a single one. */
function tokenMsOf({ call, firstTokenS, endS }: CallTimes): number | undefined {
  return call.outputTokens < 2 ? undefined : ((endS - firstTokenS) * 1000) / (call.outputTokens - 1);
}

function percentilesOf(sorted: Float64Array): LatencyPercentiles {
  const at = (q: number): number => sorted[Math.max(0, Math.ceil(q * sorted.length) - 1)] ?? 0;
  return { p50: at(0.5), p90: at(0.9), p99: at(0.99) };
}

/** Seconds over which a percentile is taken where recovery is looked for. */
const recoveryWindowS = 5;

/** From the beginning of a burst until the 99th percentile of first tokens, by arrival, stays within the bound. */
export function recoveryS(outcomes: readonly CallTimes[], burstS: number, boundMs: number): number {
  let recoveredS = burstS;
  for (let fromS = burstS; ; fromS += recoveryWindowS) {
    const within = outcomes.filter(({ call }) => call.atS >= fromS && call.atS < fromS + recoveryWindowS);
    if (within.length === 0 && !outcomes.some(({ call }) => call.atS >= fromS)) return recoveredS - burstS;
    const sorted = Float64Array.from(within, firstTokenMsOf).toSorted();
    if (percentilesOf(sorted).p99 > boundMs) recoveredS = fromS + recoveryWindowS;
  }
}

export interface Knee {
  /** The highest load, in multiples of the given one, that keeps the attainment; undefined where none does. */
  readonly factor: number | undefined;
  readonly requestsPerSecond: number | undefined;
  readonly tried: readonly { readonly factor: number; readonly attainment: number }[];
}

/** Where the load, played ever faster, no longer keeps its objective: by bisection to within two percent. */
export function findKnee(simulation: ClusterSimulation, objective: Objective, share: number): Knee {
  const tried: { factor: number; attainment: number }[] = [];
  const keeps = (factor: number): boolean => {
    const calls = simulation.calls.map((call) => ({ ...call, atS: call.atS / factor }));
    const { attainment } = reportOf(simulateCluster({ ...simulation, calls }), objective);
    tried.push({ factor, attainment });
    return attainment >= share;
  };
  let low = 1;
  let high = 1;
  if (keeps(1))
    do high = (low = high) * 2;
    while (high <= 1024 && keeps(high));
  else
    do low = (high = low) / 2;
    while (low >= 1 / 1024 && !keeps(low));
  if (low < 1 / 1024) return { factor: undefined, requestsPerSecond: undefined, tried };
  while (high / low > 1.02) {
    const middle = Math.sqrt(low * high);
    if (keeps(middle)) low = middle;
    else high = middle;
  }
  const lastS = simulation.calls.at(-1)?.atS ?? 1;
  return { factor: low, requestsPerSecond: (low * simulation.calls.length) / lastS, tried };
}
