/** Shares of what could be lost on one observation that are bet; small ones find small changes, large ones find them soon. */
const betShares = [0.01, 0.04, 0.16, 0.5, 0.8] as const;
const mostCapital = 1e250;

/**
 * Says when a bounded quantity has begun to exceed what was allowed, looked at after every observation for as long as the
 * server runs. Each bet is a capital that grows by `1 + bet · excess` and is never let below 1, so that a change is found
 * whenever it comes; as long as no excess is to be expected given the past, it takes `threshold` observations in the mean,
 * or more, until their mean reaches `threshold`. Observations need neither a distribution nor independence. Sources: e-detectors
 * (Shin, Ramdas and Rinaldo 2022), betting on bounded means (Waudby-Smith and Ramdas 2024).
 */
export class EDetector {
  readonly #capital = new Float64Array(betShares.length).fill(1);

  /** `excess` over what is allowed is at least `-mostLoss`. */
  observe(excess: number, mostLoss: number): void {
    for (const [index, share] of betShares.entries()) {
      const grown = Math.max(1, this.#capital[index]!) * (1 + (share / mostLoss) * excess);
      this.#capital[index] = Math.min(mostCapital, Math.max(0, grown));
    }
  }

  /** Evidence of excess: 1 or so where there is none. */
  get value(): number {
    return this.#capital.reduce((sum, capital) => sum + capital, 0) / betShares.length;
  }

  reset(): void {
    this.#capital.fill(1);
  }
}

const msPerYear = 365.25 * 86_400_000;

/** The threshold at which `streams` of an observation every `everyMs` raise at most one false alarm in so many years. */
export function alarmThreshold(falseAlarmYears: number, everyMs: number, streams: number): number {
  return Math.max(1, (falseAlarmYears * msPerYear * Math.max(1, streams)) / everyMs);
}
