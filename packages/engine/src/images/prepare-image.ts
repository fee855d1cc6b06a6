import { Worker } from "node:worker_threads";
import type { Gemma4VisionPart, Qwen3VisionPart, SiglipPart } from "@octavo/artifacts/checkpoint/checkpoint";
import { type ErrorCode, OctavoError } from "@octavo/protocol/errors";
import type { PatchGrid, PatchLayout } from "./patches.js";

export interface PrepareTask {
  readonly bytes: Uint8Array;
  /** Of one size. */
  readonly square?: { readonly processing: SiglipPart["processing"]; readonly layout: PatchLayout };
  /** Of the image's own shape. */
  readonly shaped?: {
    readonly processing: Qwen3VisionPart["processing"];
    readonly layout: Pick<Qwen3VisionPart["config"], "patchSize" | "poolSize" | "moments">;
  };
  /** Of the image's own shape, within a budget of tokens; channels of a pixel side by side. */
  readonly budgeted?: {
    readonly processing: Gemma4VisionPart["processing"];
    readonly layout: Pick<Gemma4VisionPart["config"], "patchSize" | "poolSize">;
  };
}

export interface PreparedImage {
  readonly patches: Float32Array;
  readonly grid: PatchGrid;
}

export type PrepareReply =
  | PreparedImage
  | { readonly failure: { readonly code: ErrorCode; readonly message: string } };

/** An image that takes longer is given up. */
const timeoutMs = 60_000;

/**
 * An image's patches as the tower receives them, made in a worker thread of its own.
 * @throws OctavoError `invalid_request`, `native_unavailable`, or `overloaded` when the worker does not answer
 */
export function prepareImage(task: PrepareTask): Promise<PreparedImage> {
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
      else finish(() => resolve(reply));
    });
    worker.once("error", (error: Error) =>
      fail("internal_error", `The image's worker failed: ${error.message}`, error),
    );
    worker.once("exit", () => fail("internal_error", "The image's worker ended before it answered."));
  });
}
