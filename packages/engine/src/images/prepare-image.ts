import { Worker } from "node:worker_threads";
import type { VisionPart } from "@octavo/artifacts/checkpoint/checkpoint";
import { type ErrorCode, OctavoError } from "@octavo/protocol/errors";
import type { PatchLayout } from "./patches.js";

export interface PrepareTask {
  readonly bytes: Uint8Array;
  readonly processing: VisionPart["processing"];
  readonly layout: PatchLayout;
}

export type PrepareReply =
  | { readonly patches: Float32Array }
  | { readonly failure: { readonly code: ErrorCode; readonly message: string } };

/** An image that takes longer is given up. */
const timeoutMs = 60_000;

/**
 * An image's patches as the tower receives them, made in a worker thread of its own.
 * @throws OctavoError `invalid_request`, `native_unavailable`, or `overloaded` when the worker does not answer
 */
export function prepareImage(task: PrepareTask): Promise<Float32Array> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL("./prepare-worker.js", import.meta.url), {
      workerData: task,
      execArgv: [],
      env: {},
    });
    const finish = (settle: () => void): void => {
      clearTimeout(timer);
      worker.removeAllListeners();
      worker.on("error", () => {});
      void worker.terminate();
      settle();
    };
    const fail = (code: ErrorCode, message: string, cause?: unknown): void =>
      finish(() => reject(new OctavoError(code, message, { cause })));
    const timer = setTimeout(
      () => fail("overloaded", `The image was not decoded within ${timeoutMs} ms; try again later.`),
      timeoutMs,
    );
    worker.on("message", (reply: PrepareReply) => {
      if ("failure" in reply) fail(reply.failure.code, reply.failure.message);
      else finish(() => resolve(reply.patches));
    });
    worker.once("error", (error: Error) =>
      fail("internal_error", `The image's worker failed: ${error.message}`, error),
    );
    worker.once("exit", () => fail("internal_error", "The image's worker ended before it answered."));
  });
}
