import type { Account } from "../../scheduler/account.js";
import { TestRandom } from "@octavo/text/testing/random";

/** A request of a simulated load. */
export interface SimulatedRequest {
  readonly account: Account;
  readonly arrivalMs: number;
  readonly promptTokens: number;
  readonly outputTokens: number;
}

/** The load of one tenant. */
export interface TenantLoad {
  readonly account: Account;
  readonly requestsPerMinute: number;
  /** Shape of the gamma distribution of the gaps between requests: 1 is Poisson, less is burstier. */
  readonly burstiness: number;
  /** Mean lengths; each length is between a quarter and three times the mean. */
  readonly promptTokens: number;
  readonly outputTokens: number;
}

/** A tenant's requests over a duration, in order of arrival; reproducible by seed. */
export function requestsOf(load: TenantLoad, durationMs: number, seed: number): readonly SimulatedRequest[] {
  const random = new TestRandom(seed);
  const { account, requestsPerMinute, burstiness, promptTokens, outputTokens } = load;
  const meanGapMs = 60_000 / requestsPerMinute;
  const requests: SimulatedRequest[] = [];
  // Starting with a request would make the start look like a burst.
  let arrivalMs = random.next() * meanGapMs;
  while (arrivalMs < durationMs) {
    requests.push({
      account,
      arrivalMs,
      promptTokens: lengthAround(promptTokens, random),
      outputTokens: lengthAround(outputTokens, random),
    });
    arrivalMs += gamma(burstiness, random) * (meanGapMs / burstiness);
  }
  return requests;
}

/** Requests of several tenants in order of arrival. */
export function together(...loads: readonly (readonly SimulatedRequest[])[]): readonly SimulatedRequest[] {
  return loads.flat().sort((a, b) => a.arrivalMs - b.arrivalMs);
}

/** Log-normal with the given mean, clipped to a quarter and three times it. */
function lengthAround(mean: number, random: TestRandom): number {
  const sigma = 0.5;
  const length = mean * Math.exp(sigma * normal(random) - (sigma * sigma) / 2);
  return Math.max(1, Math.round(Math.min(3 * mean, Math.max(mean / 4, length))));
}

function normal(random: TestRandom): number {
  return Math.sqrt(-2 * Math.log(1 - random.next())) * Math.cos(2 * Math.PI * random.next());
}

/** With scale 1, after Marsaglia and Tsang (2000); shapes below 1 by their boost. */
function gamma(shape: number, random: TestRandom): number {
  if (shape < 1) return gamma(shape + 1, random) * (1 - random.next()) ** (1 / shape);
  const d = shape - 1 / 3;
  const c = 1 / Math.sqrt(9 * d);
  for (;;) {
    const x = normal(random);
    const v = (1 + c * x) ** 3;
    if (v > 0 && Math.log(1 - random.next()) < 0.5 * x * x + d - d * v + d * Math.log(v)) return d * v;
  }
}
