import { fileURLToPath } from "node:url";
import type { MeasureContext } from "./contender.js";
import type { ServerJob, ServerProcess } from "./served.js";

const cli = fileURLToPath(new URL("../../../../packages/cli/dist/main.js", import.meta.url));
const PORT = 18_090;

/** `octavo serve` with room for the job's clients, every other setting as it comes. */
export function octavoServer(job: ServerJob, { model, threads, env }: MeasureContext): ServerProcess {
  const maxModelLen = roomPerClient(job);
  return {
    command: process.execPath,
    args: [
      cli,
      "serve",
      model.path,
      "--host",
      "127.0.0.1",
      "--port",
      String(PORT),
      "--threads",
      String(threads),
      "--max-num-seqs",
      String(job.clients),
      "--max-model-len",
      String(maxModelLen),
      ...(job.maxPrefillStepMs === undefined ? [] : ["--max-prefill-step-ms", String(job.maxPrefillStepMs)]),
      "--log-level",
      "error",
      "--disable-access-log",
    ],
    env,
    baseUrl: `http://127.0.0.1:${PORT}`,
    healthUrl: `http://127.0.0.1:${PORT}/health`,
  };
}

/** The load client's first request, by which it learns the tokenizer. */
const CALIBRATION_TOKENS = 512;

/** Context per client: the prompt's text may cut into a few more tokens than were asked for. */
export function roomPerClient(job: ServerJob): number {
  const tokens = (job.sharedTokens + job.inputTokens) * 1.25 + job.outputTokens + 64;
  return Math.max(CALIBRATION_TOKENS, Math.ceil(tokens / 64) * 64);
}
