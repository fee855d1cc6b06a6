import type { Random } from "@octavo/statistics";

/** A client that sends requests: load is composed of clients, since a few of them make most of its bursts (ServeGen 2025). */
export interface ClientLoad {
  readonly tenant: string;
  readonly requestsPerMinute: number;
  /** Shape of the gamma distribution of gaps: 1 is a Poisson process, below 1 burstier, above 1 more even. */
  readonly burstiness: number;
}

/** When a case is sent, in ms from the beginning. */
export interface Arrival {
  readonly tenant: string;
  /** From the beginning. */
  readonly atMs: number;
}

/** When a client's requests are due; the first is a gap after the beginning. */
export function arrivalsOf(load: ClientLoad, durationMs: number, random: Random): readonly Arrival[] {
  const meanMs = 60_000 / load.requestsPerMinute;
  const arrivals: Arrival[] = [];
  for (let atMs = gap(); atMs < durationMs; atMs += gap()) arrivals.push({ tenant: load.tenant, atMs });
  return arrivals;

  function gap(): number {
    return random.gamma(load.burstiness, meanMs / load.burstiness);
  }
}

/** The arrivals of several clients, each with its own random stream: leaving one out does not change the others'. */
export function composedArrivals(
  loads: readonly ClientLoad[],
  durationMs: number,
  random: Random,
): readonly Arrival[] {
  return loads
    .map((load, index) => arrivalsOf(load, durationMs, random.fork(index)))
    .flat()
    .toSorted((a, b) => a.atMs - b.atMs);
}
