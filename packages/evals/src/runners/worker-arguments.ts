import { parseArgs, type ParseArgsConfig } from "node:util";
import { OctavoError } from "@octavo/protocol";
import type { EvaluatorServices } from "../evaluators/registry.js";
import { openAiJudge } from "../judges/openai-judge.js";

/** Options that every worker script takes: evaluators of the user's own, threads, and whom judged evaluators ask. */
export const workerOptions = {
  module: { type: "string", multiple: true },
  threads: { type: "string" },
  concurrency: { type: "string" },
  judge: { type: "string" },
  "judge-model": { type: "string" },
  "judge-key-env": { type: "string" },
} as const satisfies ParseArgsConfig["options"];

export const workerUsage = `
  --module URL             a module that exports \`evaluators\`; may be given again
  --threads N              threads that compute scores (default: one for each core, at most 8)
  --concurrency N          pairs at a time (default 16)
  --judge URL              server of the model that judges, up to and including /v1
  --judge-model NAME       its model
  --judge-key-env NAME     environment variable with its key`;

interface WorkerSetup {
  readonly services: EvaluatorServices;
  readonly modules: readonly string[];
  readonly threads: number | undefined;
  readonly concurrency: number | undefined;
}

type Values = Readonly<ReturnType<typeof parseArgs<{ readonly options: typeof workerOptions }>>["values"]>;

/** @throws OctavoError `invalid_option` */
export function workerSetup(values: Values): WorkerSetup {
  const modules = values.module ?? [];
  const { judge: baseUrl, "judge-model": model, "judge-key-env": keyName } = values;
  if ((baseUrl === undefined) !== (model === undefined)) {
    throw new OctavoError("invalid_option", "--judge and --judge-model belong together");
  }
  const apiKey = keyName === undefined ? undefined : process.env[keyName];
  if (keyName !== undefined && apiKey === undefined) {
    throw new OctavoError("invalid_option", `--judge-key-env: ${keyName} is not set`);
  }
  const judge =
    baseUrl === undefined || model === undefined
      ? undefined
      : openAiJudge({ baseUrl, model, ...(apiKey !== undefined && { apiKey }) });
  return {
    services: judge === undefined ? {} : { judge },
    modules,
    threads: wholeNumber("threads", values.threads),
    concurrency: wholeNumber("concurrency", values.concurrency),
  };
}

export function wholeNumber(name: string, given: string | undefined): number | undefined {
  if (given === undefined) return undefined;
  if (/^[1-9]\d{0,9}$/.test(given)) return Number(given);
  throw new OctavoError("invalid_option", `--${name}: expected a whole number above 0, got ${given}`);
}

/** Runs a script and says on standard error why it failed. */
export async function runScript(script: () => Promise<void>): Promise<void> {
  try {
    await script();
  } catch (thrown) {
    const { code, message } = OctavoError.from(thrown);
    process.stderr.write(`${code}: ${message}\n`);
    process.exitCode = 1;
  }
}
