import { Worker } from "node:worker_threads";
import { OctavoError, type ErrorCode } from "@octavo/protocol/errors";
import type { TemplateInput } from "./chat-template.js";
import type { TemplateTokens } from "./compile-chat-template.js";
import { Turns } from "./turns.js";

export interface RenderLimits {
  /** Steps of the template; default `maxTemplateWork`. */
  readonly maxWork?: number;
  /** The worker is ended when it has not answered for so long, which is not the template's fault; default 60 s. */
  readonly timeoutMs?: number;
  /** Heap of the worker; default 128. */
  readonly memoryMb?: number;
  /** Longest rendered text in UTF-16 units; default 4 Mi. */
  readonly maxOutputLength?: number;
  readonly tokens?: TemplateTokens;
  readonly signal?: AbortSignal | undefined;
  /** For whom: a tenant never takes all workers. */
  readonly tenant?: string | undefined;
}

export interface RenderTask {
  readonly source: string;
  readonly input: TemplateInput;
  readonly tokens: TemplateTokens;
  readonly maxWork: number | undefined;
  readonly maxOutputLength: number;
}

export type RenderReply =
  | { readonly text: string }
  | { readonly failure: { readonly code: ErrorCode; readonly message: string } };

const maxSourceLength = 1024 * 1024;
/** Workers at a time for the whole process, as each may take `memoryMb`; further renderings wait. */
const maxWorkers = 4;
const turns = new Turns(maxWorkers);

/**
 * Renders a template that came with a request, or a model's that has much to do: in a worker thread of its own, ended when it
 * exceeds its memory. Throws `template_error` for a template that fails or exceeds a limit, `request_cancelled` on abort,
 * `overloaded` when the worker does not answer.
 */
export async function renderInWorker(
  source: string,
  input: TemplateInput,
  limits: RenderLimits = {},
): Promise<string> {
  if (source.length > maxSourceLength) throw limitError(`is longer than ${maxSourceLength} characters`);
  return turns.take(limits.tenant ?? "", () => renderNow(source, input, limits));
}

function renderNow(source: string, input: TemplateInput, limits: RenderLimits): Promise<string> {
  const { maxWork, timeoutMs = 60_000, memoryMb = 128 } = limits;
  const { maxOutputLength = 4 * 1024 * 1024, tokens = {}, signal } = limits;
  if (signal?.aborted === true) return Promise.reject(cancelled());
  const task: RenderTask = { source, input, tokens, maxWork, maxOutputLength };
  return new Promise((resolve, reject) => {
    let worker: Worker;
    try {
      worker = new Worker(new URL("./template-worker.js", import.meta.url), {
        workerData: task,
        execArgv: [],
        resourceLimits: {
          maxOldGenerationSizeMb: memoryMb,
          maxYoungGenerationSizeMb: Math.max(4, Math.floor(memoryMb / 8)),
          stackSizeMb: 4,
        },
        env: {},
      });
    } catch (cause) {
      reject(
        new OctavoError(
          "template_error",
          "The template's input cannot be handed to the worker that renders it.",
          { cause },
        ),
      );
      return;
    }
    const finish = (settle: () => void): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
      worker.removeAllListeners();
      worker.on("error", () => {});
      void worker.terminate();
      settle();
    };
    const onAbort = (): void => finish(() => reject(cancelled()));
    const timer = setTimeout(() => finish(() => reject(noAnswer(timeoutMs))), timeoutMs);
    signal?.addEventListener("abort", onAbort, { once: true });
    worker.on("message", (reply: RenderReply) => {
      finish(() =>
        "text" in reply
          ? resolve(reply.text)
          : reject(new OctavoError(reply.failure.code, reply.failure.message)),
      );
    });
    worker.once("error", (error: NodeJS.ErrnoException) => {
      const outOfMemory = error.code === "ERR_WORKER_OUT_OF_MEMORY";
      finish(() =>
        reject(
          outOfMemory
            ? limitError(`needs more than ${memoryMb} MB of memory`)
            : new OctavoError("template_error", `The template's worker failed: ${error.message}`, {
                cause: error,
              }),
        ),
      );
    });
    worker.once("exit", () =>
      finish(() =>
        reject(new OctavoError("template_error", "The template's worker ended before it answered.")),
      ),
    );
  });
}

function limitError(what: string): OctavoError {
  return new OctavoError("template_error", `The chat template ${what}; send a simpler one.`, {
    param: "chat_template",
  });
}

function noAnswer(timeoutMs: number): OctavoError {
  const message = `The chat template was not rendered within ${timeoutMs} ms of the worker's start; try again later.`;
  return new OctavoError("overloaded", message);
}

function cancelled(): OctavoError {
  return new OctavoError("request_cancelled", "Rendering the chat template was cancelled.");
}
