import type { BenchShape } from "../models/shapes.js";

/** What is to be measured, the same for every contender. Token counts are per stream. */
export type Job =
  | { readonly kind: "prefill"; readonly promptTokens: number; readonly rounds: number }
  | {
      readonly kind: "decode";
      readonly streams: number;
      readonly promptTokens: number;
      readonly newTokens: number;
    }
  | {
      readonly kind: "shared-prefix";
      /** In the contender's own process, or through its server. */
      readonly through: "library" | "http";
      readonly streams: number;
      readonly prefixTokens: number;
      readonly promptTokens: number;
      readonly newTokens: number;
    }
  | {
      readonly kind: "first-token";
      readonly promptTokens: number;
      /** Whether Octavo may keep its packed weights beside the models; they are made before the first sample. */
      readonly keepsPacked: boolean;
    }
  | { readonly kind: "memory"; readonly promptTokens: number; readonly newTokens: number }
  | {
      readonly kind: "server";
      readonly clients: number;
      readonly requests: number;
      /** Poisson arrivals; undefined sends all at once. */
      readonly requestsPerSecond: number | undefined;
      readonly sharedTokens: number;
      readonly inputTokens: number;
      readonly outputTokens: number;
      /** Octavo's bound on steps with prompts; its default without. */
      readonly maxPrefillStepMs?: number;
    }
  /** Step cost with this many requests waiting behind full running streams. */
  | { readonly kind: "waiting"; readonly streams: number; readonly waiting: number; readonly steps: number };

/** What a contender must know of a model to measure it. */
export interface MeasuredModel {
  readonly path: string;
  readonly shape: Pick<BenchShape, "vocabSize" | "contextLength" | "recurrence">;
}

export interface MeasureContext {
  readonly model: MeasuredModel;
  readonly threads: number;
  /** Added to the child's environment (OCTAVO_ISA). */
  readonly env: Readonly<Record<string, string>>;
}

export const metrics = [
  "prefillTokensPerSecond",
  "decodeTokensPerSecond",
  "contextTokens",
  "endToEndTokensPerSecond",
  "prefillSaved",
  "outsideNativeShare",
  "peakBytes",
  "anonymousBytes",
  "firstTokenMs",
  "serverTokensPerSecond",
  "ttftP99Ms",
  "maxGapP99Ms",
  "gapP50Ms",
  "gapP99Ms",
  "longestGapMs",
  "stepCostRatio",
] as const;
export type Metric = (typeof metrics)[number];

/** What one fresh process gave. */
export type Measurement = Readonly<Partial<Record<Metric, number>>>;

export interface Contender {
  readonly name: string;
  /** False where it has no way to do such a job. */
  supports(job: Job): boolean;
  /** What a job needs to be there, made once before the first measurement. */
  prepare?(job: Job, context: MeasureContext): Promise<void>;
  /** How it runs now, where it has several ways (flash attention, the type of keys and values). */
  setting?(): string;
  measure(job: Job, context: MeasureContext): Promise<Measurement>;
}
