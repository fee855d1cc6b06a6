import { OctavoError } from "@octavo/protocol/errors";
import type { RunningEngine } from "../engine-options.js";
import type { LoadOptions } from "./load-options.js";

/**
 * Has the backend compile what steps may run. A driver may take long: rejects with `request_cancelled` as soon as the signal aborts. A failure
 * disposes the engine.
 */
export async function prepareEngine(
  engine: RunningEngine,
  { onProgress, signal }: Pick<LoadOptions, "onProgress" | "signal">,
): Promise<void> {
  const compiled =
    onProgress &&
    ((done: number, total: number) =>
      onProgress({ phase: "compiling shaders", unit: "shaders", doneBytes: done, totalBytes: total }));
  const over = new AbortController();
  const aborted = new Promise<never>((_, reject) => {
    const fail = (): void =>
      reject(
        new OctavoError("request_cancelled", "Loading the model was aborted.", { cause: signal?.reason }),
      );
    if (signal?.aborted === true) fail();
    signal?.addEventListener("abort", fail, { signal: over.signal });
  });
  try {
    await Promise.race([engine.prepare(compiled), aborted]);
  } catch (error) {
    await engine[Symbol.asyncDispose]();
    throw error;
  } finally {
    over.abort();
  }
}
