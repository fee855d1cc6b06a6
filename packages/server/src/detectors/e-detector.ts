/** Bets as a share of the largest possible loss; small ones detect small changes, large ones detect changes quickly. */
const betShares = [0.01, 0.04, 0.16, 0.5, 0.8] as const;
const mostCapital = 1e250;

/**
 * Detects when a bounded quantity starts to exceed its limit, under continuous monitoring for as long as the server runs. Each bet
 * has a capital that is multiplied by `1 + bet · excess` and restarts from 1 when it falls below, so that a change is found whenever
 * it comes. While the expected excess given the past is at most 0, the mean capital takes at least `threshold` observations on
 * average to reach `threshold`. Observations need neither a known distribution nor independence. Sources: e-detectors (Shin, Ramdas
 * and Rinaldo 2022), betting on bounded means (Waudby-Smith and Ramdas 2024).
 */
export class EDetector {
  readonly #capital = new Float64Array(betShares.length).fill(1);

  /** `excess` over the limit, at least `-mostLoss`. */
  observe(excess: number, mostLoss: number): void {
    for (const [index, share] of betShares.entries()) {
      const grown = Math.max(1, this.#capital[index]!) * (1 + (share / mostLoss) * excess);
      this.#capital[index] = Math.min(mostCapital, Math.max(0, grown));
    }
  }

  /** Evidence of excess: about 1 if there is none. */
  get value(): number {
    return this.#capital.reduce((sum, capital) => sum + capital, 0) / betShares.length;
  }

  reset(): void {
    this.#capital.fill(1);
  }
}

const msPerYear = 365.25 * 86_400_000;

/** The threshold at which `streams` with an observation every `everyMs` raise at most one false alarm in `falseAlarmYears`. */
export function alarmThreshold(falseAlarmYears: number, everyMs: number, streams: number): number {
  return Math.max(1, (falseAlarmYears * msPerYear * Math.max(1, streams)) / everyMs);
}
