import { whenAborted } from "@octavo/protocol/abort";
import { setImmediate } from "node:timers/promises";

/** Work may hold the event loop for this long before timers and sockets get their turn. */
const breathMs = 20;

/**
 * Results of work on a stream of items, in the order in which it finishes. Never more than `concurrency` items are
 * between being taken from the source and being taken by the consumer: a slow consumer holds the source back. The source
 * is closed and the work's signal aborted however the iteration ends.
 *
 * Rejects with the signal's reason, or with the first error of the source or of the work.
 */
export async function* concurrently<Item, Result>(
  source: AsyncIterable<Item> | Iterable<Item>,
  concurrency: number,
  work: (item: Item, signal: AbortSignal) => Result | Promise<Result>,
  signal: AbortSignal,
): AsyncGenerator<Result, void, undefined> {
  signal.throwIfAborted();
  const iterator =
    Symbol.asyncIterator in source ? source[Symbol.asyncIterator]() : source[Symbol.iterator]();
  const own = new AbortController();
  const finished: Result[] = [];
  const state: {
    numActive: number;
    isPulling: boolean;
    hasEnded: boolean;
    failure: { error: unknown } | undefined;
  } = {
    numActive: 0,
    isPulling: false,
    hasEnded: false,
    failure: undefined,
  };
  let wake = (): void => undefined;

  const fail = (error: unknown): void => {
    state.failure ??= { error };
    wake();
  };
  const start = async (item: Item): Promise<void> => {
    state.numActive++;
    try {
      finished.push(await work(item, own.signal));
    } catch (error) {
      fail(error);
    }
    state.numActive--;
    wake();
  };
  const pull = async (): Promise<void> => {
    if (state.isPulling) return;
    state.isPulling = true;
    try {
      while (
        !state.hasEnded &&
        state.failure === undefined &&
        !own.signal.aborted &&
        state.numActive + finished.length < concurrency
      ) {
        const step = await iterator.next();
        if (step.done === true) state.hasEnded = true;
        else void start(step.value);
      }
    } catch (error) {
      state.hasEnded = true;
      fail(error);
    }
    state.isPulling = false;
    wake();
  };

  const onAbort = (): void => {
    own.abort(signal.reason);
    wake();
  };
  const forget = whenAborted(signal, onAbort);
  let breathedAt = performance.now();
  try {
    for (;;) {
      signal.throwIfAborted();
      if (state.failure !== undefined) throw state.failure.error;
      const [result] = finished;
      if (finished.length > 0) {
        finished.shift();
        yield result as Result;
        if (performance.now() - breathedAt > breathMs) {
          await setImmediate();
          breathedAt = performance.now();
        }
        continue;
      }
      void pull();
      if (state.hasEnded && state.numActive === 0 && finished.length === 0) return;
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
      wake = (): void => undefined;
    }
  } finally {
    forget();
    own.abort(new DOMException("the run has ended", "AbortError"));
    if (!state.hasEnded) {
      const close = async (): Promise<void> => void (await iterator.return?.());
      const closing = close().catch(() => undefined);
      // a source that is being waited for closes when it answers: do not wait for it
      if (!state.isPulling) await closing;
    }
  }
}
