/** Lower and upper end. */
export type Interval = readonly [number, number];

/** A figure with its uncertainty. */
export interface Estimate {
  readonly estimate: number;
  /** Undefined where the data is too little, or too uniform, to give one. */
  readonly interval: Interval | undefined;
  /** Confidence level of the interval, such as 0.95. */
  readonly confidence: number;
}

/** What a test looks for beside its null hypothesis. `less`: the first is lower than the second, or the value below 0. */
export type Alternative = "two-sided" | "less" | "greater";
