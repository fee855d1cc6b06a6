import { currentScope } from "./context/using-attributes.js";
import type { SinkCounts, SpanSink } from "./export/span-sink.js";
import type { LlmSpan } from "./span/llm-span.js";
import { childContext, type TraceContext } from "./span/trace-context.js";

/** What becomes a span, and what of a call is kept in it. */
export interface TracingOptions {
  readonly sinks: readonly SpanSink[];
  /** Share of new traces that are kept, 0 to 1; traces that others began are kept as they decided. */
  readonly sampleRatio: number;
  /** Whether prompts and answers are kept. */
  readonly captureContent: boolean;
  /** Characters of content kept of one call. */
  readonly maxContentCharacters: number;
  /** `gen_ai.provider.name` of client calls. */
  readonly provider: string;
  /** The span that is active in another tracing library, if any. */
  readonly parent: (() => TraceContext | undefined) | undefined;
}

/** A call that has not ended. */
export interface OpenCall {
  /** Ends it now, because the process or the tracing ends. */
  abandon(): void;
}

/** Where spans are made and where they go. */
export class Tracing implements AsyncDisposable {
  readonly options: TracingOptions;
  readonly #open = new Set<OpenCall>();
  #isClosed = false;

  constructor(options: TracingOptions) {
    this.options = options;
  }

  /** Counts of each sink, in order. */
  get counts(): readonly SinkCounts[] {
    return this.options.sinks.map((sink) => sink.counts);
  }

  get openCalls(): number {
    return this.#open.size;
  }

  /** The span that a call made here and now belongs under. */
  activeParent(): TraceContext | undefined {
    return currentScope().parent ?? this.options.parent?.();
  }

  newContext(parent: TraceContext | undefined): TraceContext {
    return childContext(parent, this.options.sampleRatio);
  }

  opened(call: OpenCall): void {
    this.#open.add(call);
  }

  ended(call: OpenCall): void {
    this.#open.delete(call);
  }

  record(span: LlmSpan): void {
    if (this.#isClosed) return;
    for (const sink of this.options.sinks) sink.add(span);
  }

  /** Resolves when all ended spans are delivered or dropped, at the latest after `deadlineMs`. */
  async flush(deadlineMs = 5000): Promise<void> {
    await Promise.all(this.options.sinks.map((sink) => sink.flush(deadlineMs)));
  }

  /** Ends calls that are under way as abandoned, flushes, and records nothing more. */
  async shutdown(deadlineMs = 5000): Promise<void> {
    if (this.#isClosed) return;
    for (const call of this.#open) call.abandon();
    this.#isClosed = true;
    await Promise.all(this.options.sinks.map((sink) => sink.close(deadlineMs)));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.shutdown();
  }
}
