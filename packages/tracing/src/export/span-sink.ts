import type { LlmSpan } from "../span/llm-span.js";

/** Takes finished spans. `add` never throws, never waits and keeps a bounded amount. */
export interface SpanSink {
  add(span: LlmSpan): void;
  readonly counts: SinkCounts;
  /** Resolves when everything taken so far has been delivered or dropped, at the latest after `deadlineMs`. */
  flush(deadlineMs: number): Promise<void>;
  /** Flushes, then takes no more. */
  close(deadlineMs: number): Promise<void>;
}

/** What became of the spans, or other records, that a sink was given; counts since it was opened. */
export interface SinkCounts {
  readonly delivered: number;
  /** The buffer was full. */
  readonly droppedFull: number;
  /** Refused by their receiver, or given up after retries. */
  readonly droppedFailed: number;
  readonly waiting: number;
}
