import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { SinkCounts, SpanSink } from "../export/span-sink.js";
import type { LlmSpan } from "../span/llm-span.js";
import { SpanStore, type SpanStoreOptions } from "./span-store.js";

/** The folder of spans with their content, inside that of all spans. */
export const contentFolder = "content";

export interface ContentStoreOptions extends Pick<SpanStoreOptions, "folder" | "onProblem"> {
  /** Content is removed when it is so old, and at the latest a sixteenth of it later while a process has the store open. */
  readonly contentMaxAgeMs: number;
}

/**
 * A store that keeps content apart: all spans in its folder, without content, and those with content once more in `content/`,
 * which only this user may read and which is removed sooner.
 */
export class ContentStore implements SpanSink {
  readonly #spans: SpanStore;
  readonly #withContent: SpanStore;

  private constructor(spans: SpanStore, withContent: SpanStore) {
    this.#spans = spans;
    this.#withContent = withContent;
  }

  /** Throws `invalid_option` where the folder cannot be written. */
  static async open({ contentMaxAgeMs, ...options }: ContentStoreOptions): Promise<ContentStore> {
    const spans = await SpanStore.open(options);
    const folder = join(options.folder, contentFolder);
    // a failure is told by the store that is opened next
    await mkdir(folder, { mode: 0o700 }).catch(() => undefined);
    const sliceMs = contentMaxAgeMs / 16;
    const withContent = await SpanStore.open({
      ...options,
      folder,
      // a segment's first span is older than its last by at most a slice
      maxSegmentAgeMs: sliceMs,
      maxAgeMs: contentMaxAgeMs - 2 * sliceMs,
      tidyEveryMs: sliceMs,
    });
    return new ContentStore(spans, withContent);
  }

  get counts(): SinkCounts {
    const [all, withContent] = [this.#spans.counts, this.#withContent.counts];
    return {
      delivered: all.delivered,
      droppedFull: all.droppedFull + withContent.droppedFull,
      droppedFailed: all.droppedFailed + withContent.droppedFailed,
      waiting: all.waiting + withContent.waiting,
    };
  }

  add(span: LlmSpan): void {
    this.#spans.add(span.content === undefined ? span : { ...span, content: undefined });
    if (span.content !== undefined) this.#withContent.add(span);
  }

  async flush(deadlineMs: number): Promise<void> {
    await Promise.all([this.#spans.flush(deadlineMs), this.#withContent.flush(deadlineMs)]);
  }

  async close(deadlineMs: number): Promise<void> {
    await Promise.all([this.#spans.close(deadlineMs), this.#withContent.close(deadlineMs)]);
  }
}
