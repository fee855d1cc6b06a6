import { Random } from "@octavo/statistics";
import type { SimulatedCall } from "./step-costs.js";

/** Requests per second from a time on, until the next phase or the end. */
export interface LoadPhase {
  readonly fromS: number;
  readonly requestsPerSecond: number;
}

export interface GeneratedLoad {
  readonly phases: readonly LoadPhase[];
  readonly durationS: number;
  /** Shape of the gaps' gamma distribution: 1 is Poisson, less is burstier. */
  readonly burstiness: number;
  /** Means of geometric lengths. */
  readonly promptTokens: number;
  readonly outputTokens: number;
  readonly seed: number;
}

/** Calls with gamma gaps and geometric lengths, by arrival; the same for the same seed. */
export function generateCalls(load: GeneratedLoad): readonly SimulatedCall[] {
  const { phases, durationS, burstiness, promptTokens, outputTokens, seed } = load;
  const random = new Random(seed);
  const length = (mean: number): number => Math.max(1, Math.ceil(-mean * Math.log(1 - random.uniform())));
  const calls: SimulatedCall[] = [];
  for (const [index, { fromS, requestsPerSecond }] of phases.entries()) {
    const untilS = phases[index + 1]?.fromS ?? durationS;
    if (requestsPerSecond === 0) continue;
    let atS = fromS;
    for (;;) {
      atS += random.gamma(burstiness, 1 / (requestsPerSecond * burstiness));
      if (atS >= untilS) break;
      calls.push({ atS, promptTokens: length(promptTokens), outputTokens: length(outputTokens) });
    }
  }
  return calls;
}
