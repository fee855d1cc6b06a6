import { setMaxListeners } from "node:events";

/**
 * Calls `listener` once when `signal` is aborted, at once where it is already. Returns what takes the listener off again. One signal may
 * belong to a thousand prompts, so it has no limit of listeners from then on.
 */
export function whenAborted(signal: AbortSignal | undefined, listener: () => void): () => void {
  if (signal === undefined) return () => undefined;
  if (signal.aborted) {
    listener();
    return () => undefined;
  }
  setMaxListeners(0, signal);
  signal.addEventListener("abort", listener, { once: true });
  return () => signal.removeEventListener("abort", listener);
}

/** What `work` comes to; rejects with `toError(reason)` as soon as `signal` is aborted, while the work goes on. */
export async function unlessAborted<Result>(
  work: Promise<Result>,
  signal: AbortSignal | undefined,
  toError: (reason: unknown) => Error,
): Promise<Result> {
  if (signal === undefined) return work;
  return new Promise((resolve, reject) => {
    const forget = whenAborted(signal, () => reject(toError(signal.reason)));
    work.then(resolve, reject).finally(forget);
  });
}
