import { OctavoError } from "@octavo/protocol/errors";
import type { GenerationEvent, SequenceDelta } from "../api.js";
import { type GenerationResult, ResultCollector } from "./generation-result.js";

/** What a generation needs to begin: resolved prompt ids and the engine's event stream. */
export interface StartedGeneration {
  readonly requestId: string;
  readonly promptTokens: Int32Array;
  /** If it ends the generation, the result rejects with `request_cancelled`. */
  readonly signal?: AbortSignal | undefined;
  readonly events: AsyncIterable<GenerationEvent>;
}

type Outcome =
  | { readonly kind: "finished"; readonly result: GenerationResult }
  | { readonly kind: "failed"; readonly error: OctavoError };

/**
 * One request, as a stream and as a result:
 *
 * ```ts
 * for await (const { text } of llm.generate("Once")) process.stdout.write(text);
 * const { text, usage } = await llm.generate("Once");
 * ```
 *
 * It is queued when it is first read or awaited. It can be iterated once; awaiting it during or after the iteration gives
 * the whole. Leaving the loop early aborts the request, frees its memory and lets the result reject with `request_cancelled`.
 */
export class Generation implements AsyncIterable<SequenceDelta>, PromiseLike<GenerationResult> {
  readonly #start: () => Promise<StartedGeneration>;
  #begun = false;
  #outcome: Outcome | undefined;
  readonly #waiting: ((outcome: Outcome) => void)[] = [];

  constructor(start: () => Promise<StartedGeneration>) {
    this.#start = start;
  }

  /** New text and tokens as they come; with `n` > 1 those of different sequences are interleaved; `index` tells which. */
  [Symbol.asyncIterator](): AsyncGenerator<SequenceDelta, void, undefined> {
    if (this.#begun) {
      throw new OctavoError(
        "invalid_request",
        "A generation can be iterated once; await it for the whole text.",
      );
    }
    this.#begun = true;
    const stream = this.#run();
    const leave = stream.return.bind(stream);
    // A generator that is left before its first `next` runs nothing, not even its `finally`.
    stream.return = async (value) => {
      const result = await leave(value);
      this.#settleAsLeft();
      return result;
    };
    return stream;
  }

  /** The finished generation; starts it unless it is being iterated. */
  result(): Promise<GenerationResult> {
    if (!this.#begun) {
      this.#begun = true;
      void this.#drain();
    }
    return new Promise((resolve, reject) => {
      const settle = (outcome: Outcome): void => {
        if (outcome.kind === "finished") resolve(outcome.result);
        else reject(outcome.error);
      };
      if (this.#outcome === undefined) this.#waiting.push(settle);
      else settle(this.#outcome);
    });
  }

  // oxlint-disable-next-line unicorn/no-thenable -- awaiting a generation is its documented use
  then<A = GenerationResult, B = never>(
    onFulfilled?: ((result: GenerationResult) => A | PromiseLike<A>) | null,
    onRejected?: ((error: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.result().then(onFulfilled, onRejected);
  }

  async *#run(): AsyncGenerator<SequenceDelta, void, undefined> {
    try {
      const started = await this.#start();
      const collector = new ResultCollector(started.requestId, started.promptTokens);
      for await (const event of started.events) {
        collector.add(event);
        if (event.kind === "delta") yield* event.deltas;
      }
      const result = collector.finish();
      if (
        started.signal?.aborted === true &&
        result.sequences.some((sequence) => sequence.finishReason === "abort")
      ) {
        throw new OctavoError("request_cancelled", "The generation was aborted.", {
          cause: started.signal.reason,
        });
      }
      this.#settle({ kind: "finished", result });
    } catch (error) {
      this.#settle({ kind: "failed", error: OctavoError.from(error) });
      throw error;
    } finally {
      this.#settleAsLeft();
    }
  }

  async #drain(): Promise<void> {
    try {
      const stream = this.#run();
      while ((await stream.next()).done !== true);
    } catch {
      // The outcome carries the error to whoever awaits it.
    }
  }

  #settleAsLeft(): void {
    if (this.#outcome !== undefined) return;
    const error = new OctavoError("request_cancelled", "The generation was left before its end.");
    this.#settle({ kind: "failed", error });
  }

  #settle(outcome: Outcome): void {
    this.#outcome = outcome;
    for (const settle of this.#waiting.splice(0)) settle(outcome);
  }
}
