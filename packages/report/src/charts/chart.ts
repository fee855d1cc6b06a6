import type { IntervalRow } from "./interval-chart.js";

/** Data of a picture, as JSON. */
export type Chart =
  | {
      readonly kind: "heatmap";
      readonly title: string;
      readonly xLabel: string;
      readonly yLabel: string;
      readonly x: readonly string[];
      readonly y: readonly string[];
      /** Rows of `y`, columns of `x`; null where there is no observation. */
      readonly cells: readonly (readonly (HeatCell | null)[])[];
    }
  | {
      readonly kind: "intervals";
      readonly title: string;
      readonly unit: string;
      readonly rows: readonly IntervalRow[];
    }
  | {
      readonly kind: "series";
      readonly title: string;
      readonly xLabel: string;
      readonly yLabel: string;
      readonly lines: readonly {
        readonly label: string;
        readonly points: readonly (readonly [number, number])[];
      }[];
      /** Shaded spans of x, such as a burst. */
      readonly spans?: readonly { readonly label: string; readonly from: number; readonly to: number }[];
      readonly threshold?: number;
    }
  | {
      readonly kind: "steps";
      readonly title: string;
      /** Engine steps around a slow token; the one that caused it is highlighted. Times in ms from the first. */
      readonly steps: readonly {
        readonly startMs: number;
        readonly durationMs: number;
        readonly prefillTokens: number;
        readonly decodeTokens: number;
        readonly isBlamed: boolean;
        readonly label: string;
      }[];
    };

/** A cell of a heat map: a mean, of how many, with its interval. */
export interface HeatCell {
  readonly value: number;
  readonly count: number;
  readonly interval: readonly [number, number] | undefined;
}
