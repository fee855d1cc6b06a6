import type { GenerationEvent } from "@octavo/engine";
import { captureContent, type CaptureBounds, type CapturedContent, type WireExchange } from "@octavo/tracing";

/** What is kept of which requests. */
export interface ContentPolicy extends CaptureBounds {
  /** Share of sampled traces, 0 to 1. */
  readonly sampleRatio: number;
  /** By name; empty: all. */
  readonly tenants: readonly string[];
}

/** What a sequence has given so far. */
export interface CapturedSequence {
  readonly text: string;
  readonly finishReason: string | undefined;
}

interface Watched {
  readonly sequences: { text: string; finishReason: string | undefined }[];
  readonly read: (sequences: readonly CapturedSequence[]) => WireExchange;
}

/** Collects what one HTTP request asked and what the engine answered, until its span is made. */
export class ContentCapture {
  readonly #watched: Watched[] = [];

  /**
   * Passes a generation's events on and collects their text.
   * @param read what was asked and answered, from the sequences as they are when the span is made
   */
  watch(events: AsyncIterable<GenerationEvent>, read: Watched["read"]): AsyncIterable<GenerationEvent> {
    const sequences: Watched["sequences"] = [];
    this.#watched.push({ sequences, read });
    return collecting(events, sequences);
  }

  /** Undefined if nothing was asked of the engine. */
  captured(bounds: CaptureBounds): CapturedContent | undefined {
    if (this.#watched.length === 0) return undefined;
    return captureContent(
      this.#watched.map(({ sequences, read }) => read(sequences)),
      bounds,
    );
  }
}

async function* collecting(
  events: AsyncIterable<GenerationEvent>,
  sequences: Watched["sequences"],
): AsyncGenerator<GenerationEvent, void, undefined> {
  for await (const event of events) {
    if (event.kind !== "prompt" && event.kind !== "done")
      for (const { index, text, finishReason } of event.deltas) {
        const sequence = (sequences[index] ??= { text: "", finishReason: undefined });
        sequence.text += text;
        sequence.finishReason ??= finishReason;
      }
    yield event;
  }
}

/** Whether a trace is among those that keep content: the same answer for every span of it, on every server. */
export function isContentSampled(traceId: string, ratio: number): boolean {
  return Number.parseInt(traceId.slice(-8), 16) < ratio * 2 ** 32;
}
