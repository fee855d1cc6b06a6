import { asObject } from "@octavo/protocol";
import type { SpanOutcome } from "../span/llm-span.js";
import type { ObservedCall } from "./observed-call.js";

/** The parts of openai's `Stream` that hold what it yields. */
interface StreamLike {
  iterator: () => AsyncIterator<unknown>;
  readonly controller: AbortController;
}

export function isStream(value: unknown): value is StreamLike {
  const fields = asObject(value);
  return typeof fields?.["iterator"] === "function" && fields["controller"] instanceof AbortController;
}

/**
 * Watches what a stream yields without changing the stream, its class or what it yields. The span ends with the last
 * chunk, a failure, the reader's `break`, an abort, or when nobody can read the stream any more.
 */
export function observeStream(stream: StreamLike, call: ObservedCall): void {
  call.streamBegins();
  const watch = new StreamWatch(call, stream.controller.signal);
  call.watchReader(stream, "stream");
  watchIterator(stream, stream.iterator, watch);
}

function watchIterator(stream: StreamLike, iterator: StreamLike["iterator"], watch: StreamWatch): void {
  stream.iterator = () => watch.iterate(iterator.call(stream));
}

/** Holds nothing of the stream it watches: the signal, which outlives a dropped stream, holds this. */
class StreamWatch {
  readonly #call: ObservedCall;
  readonly #signal: AbortSignal;
  /**
   * A reader that has been told of the abort may never come back for the end. One that waits for a chunk will learn why
   * there is none, and tell: openai's streams also abort themselves when they fail.
   */
  readonly #onAbort = (): void => {
    if (this.#readsUnderWay === 0) this.#call.streamEnds(abortedOutcome);
  };
  #readsUnderWay = 0;

  constructor(call: ObservedCall, signal: AbortSignal) {
    this.#call = call;
    this.#signal = signal;
    signal.addEventListener("abort", this.#onAbort, { once: true });
  }

  /** A second iteration fails in the stream itself and says nothing of the first. */
  iterate(source: AsyncIterator<unknown>): AsyncIterator<unknown> {
    if (this.#call.isIterated) return source;
    this.#call.isIterated = true;
    const watched = new WatchedIterator(source, this.#call, this);
    this.#call.watchReader(watched, "iterator");
    return watched;
  }

  async read(source: AsyncIterator<unknown>): Promise<IteratorResult<unknown>> {
    this.#readsUnderWay += 1;
    try {
      return await source.next();
    } finally {
      this.#readsUnderWay -= 1;
    }
  }

  /** An aborted stream of openai's ends as if it were complete. */
  complete(): void {
    this.end(this.#signal.aborted ? abortedOutcome : { kind: "ok" });
  }

  end(outcome: SpanOutcome): void {
    this.#signal.removeEventListener("abort", this.#onAbort);
    this.#call.streamEnds(outcome);
  }
}

const abortedOutcome: SpanOutcome = {
  kind: "aborted",
  errorType: "APIUserAbortError",
  message: "the caller aborted the stream",
};

class WatchedIterator implements AsyncIterableIterator<unknown> {
  readonly #source: AsyncIterator<unknown>;
  readonly #call: ObservedCall;
  readonly #watch: StreamWatch;

  constructor(source: AsyncIterator<unknown>, call: ObservedCall, watch: StreamWatch) {
    this.#source = source;
    this.#call = call;
    this.#watch = watch;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<unknown>> {
    this.#call.awaitsChunk();
    let result: IteratorResult<unknown>;
    try {
      result = await this.#watch.read(this.#source);
    } catch (thrown) {
      this.#call.fail(thrown);
      throw thrown;
    }
    if (result.done === true) this.#watch.complete();
    else this.#call.chunk(result.value);
    return result;
  }

  async return(value?: unknown): Promise<IteratorResult<unknown>> {
    this.#watch.end({ kind: "stopped" });
    return (await this.#source.return?.(value)) ?? { done: true, value };
  }

  async throw(thrown?: unknown): Promise<IteratorResult<unknown>> {
    this.#call.fail(thrown);
    if (this.#source.throw === undefined) throw thrown;
    return this.#source.throw(thrown);
  }
}
