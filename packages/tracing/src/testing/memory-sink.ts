import type { SinkCounts, SpanSink } from "../export/span-sink.js";
import type { LlmSpan } from "../span/llm-span.js";

/** Keeps spans where tests can see them. */
export class MemorySink implements SpanSink {
  readonly spans: LlmSpan[] = [];

  get counts(): SinkCounts {
    return { delivered: this.spans.length, droppedFull: 0, droppedFailed: 0, waiting: 0 };
  }

  add(span: LlmSpan): void {
    this.spans.push(span);
  }

  flush(): Promise<void> {
    return Promise.resolve();
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}
