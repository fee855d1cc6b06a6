import { type Interval, normalCdf, normalQuantile, studentTCdf, studentTQuantile } from "@octavo/statistics";

/** Fewer resamples have no tails to read. */
const fewestDraws = 100;

/**
 * What a statistic became in resamples of `numBlocks` stretches or clusters. Percentile intervals, expanded for few of them
 * (Hesterberg 2015, "What teachers should know about the bootstrap", section 4.3): resamples of n spread less than samples
 * do, by sqrt((n - 1) / n), and that spread is itself estimated, so Student's t replaces the normal distribution.
 */
export class BlockDraws {
  readonly #sorted: readonly number[];
  readonly #degrees: number;
  readonly #expansion: number;

  /** @param draws finite */
  constructor(draws: readonly number[], numBlocks: number) {
    this.#sorted = draws.length < fewestDraws || numBlocks < 2 ? [] : draws.toSorted((a, b) => a - b);
    this.#degrees = numBlocks - 1;
    this.#expansion = Math.sqrt(numBlocks / Math.max(1, numBlocks - 1));
  }

  /** Two-sided; undefined with too few draws. */
  interval(confidence: number): Interval | undefined {
    const count = this.#sorted.length;
    if (count === 0) return undefined;
    const z = studentTQuantile((1 - confidence) / 2, this.#degrees) * this.#expansion;
    const at = (share: number) => this.#sorted[Math.min(count - 1, Math.max(0, Math.floor(share * count)))]!;
    return [at(normalCdf(z)), at(normalCdf(-z))];
  }

  /**
   * Two-sided p value of "it is at most `margin`". Where no draw is, how many of their standard deviations it lies below them
   * says how much smaller the value is than draws can show.
   */
  pValueBeyond(margin: number): number | undefined {
    const count = this.#sorted.length;
    if (count === 0) return undefined;
    const firstAbove = this.#sorted.findIndex((value) => value > margin);
    const within = firstAbove < 0 ? count : firstAbove;
    const seen = normalQuantile(Math.min(1 - 0.5 / count, (within + 0.5) / (count + 0.5)));
    const z = within === 0 ? Math.min(seen, this.#deviations(margin)) : seen;
    return Math.min(1, 2 * studentTCdf(z / this.#expansion, this.#degrees));
  }

  #deviations(margin: number): number {
    const mean = this.#sorted.reduce((sum, value) => sum + value, 0) / this.#sorted.length;
    const squares = this.#sorted.reduce((sum, value) => sum + (value - mean) ** 2, 0);
    const deviation = Math.sqrt(squares / this.#sorted.length);
    return deviation === 0 ? Number.NEGATIVE_INFINITY : (margin - mean) / deviation;
  }
}
