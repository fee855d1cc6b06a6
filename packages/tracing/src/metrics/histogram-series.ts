import type { Attributes } from "../span/llm-span.js";

export interface HistogramDefinition {
  readonly name: string;
  readonly description: string;
  /** Upper bounds in seconds, inclusive and rising. */
  readonly bounds: readonly number[];
}

export interface HistogramPoint {
  readonly attributes: Attributes;
  /** By bucket; the last is of what is beyond the bounds. */
  readonly bucketCounts: readonly number[];
  readonly count: number;
  /** Seconds. */
  readonly sum: number;
}

interface Series extends HistogramPoint {
  readonly bucketCounts: number[];
  count: number;
  sum: number;
}

/** OpenTelemetry's limit of the attribute sets of one metric, and the set that takes what is beyond (metrics SDK, cardinality limits). */
const maxSeries = 2000;
const overflow: Attributes = { "otel.metric.overflow": true };

/** Counts of values in buckets, one series for each set of attributes, of which there is a bounded number. */
export class HistogramSeries {
  readonly definition: HistogramDefinition;
  readonly #series = new Map<string, Series>();

  constructor(definition: HistogramDefinition) {
    this.definition = definition;
  }

  get points(): readonly HistogramPoint[] {
    return [...this.#series.values()];
  }

  observe(seconds: number, attributes: Attributes): void {
    if (!(seconds >= 0)) return;
    const series = this.#of(attributes);
    const { bounds } = this.definition;
    let bucket = 0;
    while (bucket < bounds.length && seconds > (bounds[bucket] ?? 0)) bucket += 1;
    series.bucketCounts[bucket] = (series.bucketCounts[bucket] ?? 0) + 1;
    series.count += 1;
    series.sum += seconds;
  }

  #of(attributes: Attributes): Series {
    const known = this.#series.get(JSON.stringify(attributes));
    if (known !== undefined) return known;
    const own = this.#series.size < maxSeries - 1 ? attributes : overflow;
    const key = JSON.stringify(own);
    let series = this.#series.get(key);
    if (series === undefined) {
      const bucketCounts = Array.from({ length: this.definition.bounds.length + 1 }, () => 0);
      series = { attributes: own, bucketCounts, count: 0, sum: 0 };
      this.#series.set(key, series);
    }
    return series;
  }
}
