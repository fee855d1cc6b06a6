import { OctavoError } from "@octavo/protocol/errors";
import { Family, formatNumber, noLabels, type Labels } from "./metric.js";

/** Counts per bucket are kept apart and summed when exposed; the last slot is +Inf. */
interface Series {
  readonly counts: Float64Array;
  sum: number;
}

export class Histogram extends Family {
  readonly #bounds: readonly number[];
  readonly #series = new Map<string, Series>();

  /** `bounds` are upper bounds, inclusive and rising; +Inf is added. */
  constructor(
    name: string,
    help: string,
    bounds: readonly number[],
    labelNames: readonly string[],
    constantLabels: Labels,
  ) {
    super("histogram", name, help, labelNames, constantLabels);
    if (labelNames.includes("le"))
      throw new OctavoError("internal_error", `histogram ${name} cannot have a label le`);
    for (let i = 1; i < bounds.length; i++) {
      if (!((bounds[i] ?? 0) > (bounds[i - 1] ?? 0)))
        throw new OctavoError("internal_error", `histogram ${name}: bounds must rise`);
    }
    this.#bounds = bounds;
    if (!this.hasLabels) this.#seriesOf(noLabels);
  }

  observe(value: number, labels: Labels = noLabels): void {
    if (Number.isNaN(value)) return;
    const series = this.#seriesOf(labels);
    let low = 0;
    let high = this.#bounds.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (value <= (this.#bounds[middle] ?? 0)) high = middle;
      else low = middle + 1;
    }
    series.counts[low] = (series.counts[low] ?? 0) + 1;
    series.sum += value;
  }

  count(labels: Labels = noLabels): number {
    return this.#seriesOf(labels).counts.reduce((total, count) => total + count, 0);
  }

  sum(labels: Labels = noLabels): number {
    return this.#seriesOf(labels).sum;
  }

  override exposeSamples(): string {
    let text = "";
    for (const [key, series] of this.#series) {
      const lead = key === "" ? "" : `${key},`;
      let cumulative = 0;
      for (let i = 0; i <= this.#bounds.length; i++) {
        cumulative += series.counts[i] ?? 0;
        text += this.sample("_bucket", `${lead}le="${bucketLabel(this.#bounds[i])}"`, cumulative);
      }
      text += this.sample("_sum", key, series.sum) + this.sample("_count", key, cumulative);
    }
    return text;
  }

  #seriesOf(labels: Labels): Series {
    const key = this.series(labels);
    let series = this.#series.get(key);
    if (series === undefined) {
      series = { counts: new Float64Array(this.#bounds.length + 1), sum: 0 };
      this.#series.set(key, series);
    }
    return series;
  }
}

/** As Python's client writes them (`1.0`, not `1`), so that bucket labels equal vLLM's. */
function bucketLabel(bound: number | undefined): string {
  if (bound === undefined) return "+Inf";
  return Number.isInteger(bound) ? `${formatNumber(bound)}.0` : formatNumber(bound);
}
