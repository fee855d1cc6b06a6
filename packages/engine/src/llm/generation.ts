import { OctavoError } from "@octavo/protocol/errors";
import type { GenerationEvent, SequenceDelta } from "../api.js";
import {
  type AnswerReader,
  type GenerationDelta,
  type GenerationResult,
  ResultCollector,
} from "./generation-result.js";

/** What a generation needs to begin: resolved prompt ids and the engine's event stream. */
export interface StartedGeneration {
  readonly requestId: string;
  readonly promptTokens: Int32Array;
  /** If it ends the generation, the result rejects with `request_cancelled`. */
  readonly signal?: AbortSignal | undefined;
  readonly events: AsyncIterable<GenerationEvent>;
  /** Chats only, if the model marks reasoning or tool calls. */
  readonly createReader?: (() => AnswerReader) | undefined;
}

/** After a part of a generation is done: how it goes on, or undefined where that was the end. */
export type NextPart = (
  result: GenerationResult,
) => Promise<(() => Promise<StartedGeneration>) | GenerationResult>;

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
export class Generation implements AsyncIterable<GenerationDelta>, PromiseLike<GenerationResult> {
  readonly #start: () => Promise<StartedGeneration>;
  #begun = false;
  #outcome: Outcome | undefined;
  readonly #waiting: ((outcome: Outcome) => void)[] = [];

  readonly #next: NextPart | undefined;

  constructor(start: () => Promise<StartedGeneration>, next?: NextPart) {
    this.#start = start;
    this.#next = next;
  }

  /** New text and tokens as they come; with `n` > 1 those of different sequences are interleaved; `index` tells which. */
  [Symbol.asyncIterator](): AsyncGenerator<GenerationDelta, void, undefined> {
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

  async *#run(): AsyncGenerator<GenerationDelta, void, undefined> {
    try {
      let start = this.#start;
      for (;;) {
        const result = yield* part(await start());
        const next = (await this.#next?.(result)) ?? result;
        if (typeof next !== "function") {
          this.#settle({ kind: "finished", result: next });
          return;
        }
        start = next;
      }
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
      // The outcome carries the error to the awaiting caller.
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

/** One request of a generation. */
async function* part(
  started: StartedGeneration,
): AsyncGenerator<GenerationDelta, GenerationResult, undefined> {
  const collector = new ResultCollector(started.requestId, started.promptTokens);
  const readers = new Map<number, AnswerReader>();
  const read = (delta: SequenceDelta): GenerationDelta => {
    if (started.createReader === undefined) return delta;
    const reader = readers.get(delta.index) ?? started.createReader();
    readers.set(delta.index, reader);
    const parts = [
      ...reader.push(delta.text, delta.tokens),
      ...(delta.finishReason === undefined ? [] : reader.finish()),
    ];
    const reasoning = parts.map((each) => each.reasoning ?? "").join("");
    const toolCalls = parts.flatMap((each) => each.tool_calls ?? []);
    return {
      ...delta,
      text: parts.map((each) => each.content ?? "").join(""),
      ...(reasoning !== "" && { reasoning }),
      ...(toolCalls.length > 0 && { toolCalls }),
    };
  };
  for await (const event of started.events) {
    if (event.kind !== "delta") {
      collector.add(event);
      continue;
    }
    const deltas = event.deltas.map(read);
    collector.add({ kind: "delta", deltas });
    yield* deltas;
  }
  const result = collector.finish();
  if (
    started.signal?.aborted === true &&
    result.sequences.some(({ finishReason }) => finishReason === "abort")
  )
    throw new OctavoError("request_cancelled", "The generation was aborted.", {
      cause: started.signal.reason,
    });
  return result;
}
