import type { OctavoError } from "@octavo/protocol/errors";
import type { GenerationEvent, SequenceDelta, TokenLogprob } from "../api.js";

/** A delta that can still be added to. */
export type PendingDelta = {
  -readonly [Key in keyof SequenceDelta]: SequenceDelta[Key];
} & { tokens: number[]; logprobs: TokenLogprob[] | undefined };

interface Waiter {
  readonly resolve: (result: IteratorResult<GenerationEvent, undefined>) => void;
  readonly reject: (error: OctavoError) => void;
}

/**
 * The events of one request between the engine and their reader. For a slow reader, increments are merged into one pending
 * delta per sequence, so the channel never grows.
 */
export class EventChannel implements AsyncIterableIterator<GenerationEvent, undefined> {
  readonly #onReturn: () => void;
  readonly #onLag: ((lagMs: number) => void) | undefined;
  /** Since when output has been waiting for its reader. */
  #waitingSinceMs: number | undefined;
  #prompt: GenerationEvent | undefined;
  /** Pending, at most one per sequence. */
  #deltas: PendingDelta[] | undefined;
  #done: GenerationEvent | undefined;
  #error: OctavoError | undefined;
  #isClosed = false;
  readonly #waiters: Waiter[] = [];
  readonly #wait = (resolve: Waiter["resolve"], reject: Waiter["reject"]): void => {
    this.#waiters.push({ resolve, reject });
    this.#serve();
  };

  /** `onReturn` is called when the reader leaves early, `onLag` when it takes output that waited for it. */
  constructor(onReturn: () => void, onLag?: (lagMs: number) => void) {
    this.#onReturn = onReturn;
    this.#onLag = onLag;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<GenerationEvent, undefined>> {
    return new Promise(this.#wait);
  }

  return(): Promise<IteratorResult<GenerationEvent, undefined>> {
    if (!this.#isClosed) {
      this.#isClosed = true;
      this.#prompt = undefined;
      this.#deltas = undefined;
      this.#onReturn();
      this.#serve();
    }
    return Promise.resolve({ done: true, value: undefined });
  }

  pushPrompt(event: GenerationEvent & { kind: "prompt" }): void {
    this.#prompt = event;
    this.#serve();
  }

  /** Takes ownership of the deltas, at most one per sequence, and of their arrays. */
  pushDeltas(deltas: PendingDelta[]): void {
    if (this.#isClosed) return;
    if (this.#deltas === undefined) this.#deltas = deltas;
    else mergeAll(this.#deltas, deltas);
    this.#serve();
    if (this.#deltas !== undefined) this.#waitingSinceMs ??= performance.now();
  }

  close(event: GenerationEvent & { kind: "done" }): void {
    this.#done = event;
    this.#serve();
  }

  /** Ends the events with an error, after those already there. */
  fail(error: OctavoError): void {
    this.#error = error;
    this.#serve();
  }

  #serve(): void {
    for (let waiter = this.#waiters[0]; waiter !== undefined; waiter = this.#waiters[0]) {
      const event = this.#take();
      if (event !== undefined) waiter.resolve({ done: false, value: event });
      else if (this.#error !== undefined && !this.#isClosed) {
        this.#isClosed = true;
        waiter.reject(this.#error);
      } else if (this.#isClosed) waiter.resolve({ done: true, value: undefined });
      else return;
      this.#waiters.shift();
    }
  }

  #take(): GenerationEvent | undefined {
    if (this.#isClosed) return undefined;
    if (this.#prompt !== undefined) {
      const event = this.#prompt;
      this.#prompt = undefined;
      return event;
    }
    if (this.#deltas !== undefined) {
      const deltas = this.#deltas;
      this.#deltas = undefined;
      if (this.#waitingSinceMs !== undefined) {
        this.#onLag?.(performance.now() - this.#waitingSinceMs);
        this.#waitingSinceMs = undefined;
      }
      return { kind: "delta", deltas };
    }
    const event = this.#done;
    if (event !== undefined) this.#isClosed = true;
    return event;
  }
}

function mergeAll(into: PendingDelta[], more: readonly PendingDelta[]): void {
  const pending = new Map(into.map((delta) => [delta.index, delta]));
  for (const delta of more) {
    const earlier = pending.get(delta.index);
    if (earlier === undefined) into.push(delta);
    else merge(earlier, delta);
  }
}

function merge(into: PendingDelta, more: PendingDelta): void {
  into.text += more.text;
  for (const token of more.tokens) into.tokens.push(token);
  for (const logprob of more.logprobs ?? []) into.logprobs?.push(logprob);
  into.finishReason = more.finishReason;
  into.stopReason = more.stopReason;
}
