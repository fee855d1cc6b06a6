import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { LLM, type LoadOptions } from "@octavo/engine";
import { type LoadTestOptions, type LoadTestReport } from "@octavo/loadtest";
import { OctavoError } from "@octavo/protocol";
import { createServer } from "@octavo/server";

export const embeddedModel = fileURLToPath(new URL("../../models/octavo-mini", import.meta.url));

/** Serves a model from this process for as long as `use` runs. */
export async function withServer<T>(
  model: string,
  options: LoadOptions,
  use: (baseUrl: string, llm: LLM) => Promise<T>,
): Promise<T> {
  await using llm = await LLM.load(model, options);
  await using server = createServer({
    model: llm,
    config: { port: 0, logLevel: "silent", accessLog: false },
  });
  const { url } = await server.listen();
  return await use(url, llm);
}

/** Runs a load test in a process of its own, so that the client's work is not in the measured one. */
export async function loadFromOutside(
  options: Omit<LoadTestOptions, "onProgress" | "onNotice" | "signal">,
): Promise<LoadTestReport> {
  const client = fileURLToPath(new URL("load-client.js", import.meta.url));
  const child = spawn(process.execPath, [client, JSON.stringify(options)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const chunks: Buffer[] = [];
  child.stdout.on("data", (chunk: Buffer) => chunks.push(chunk));
  const [code]: unknown[] = await once(child, "close");
  if (code !== 0) throw new OctavoError("internal_error", `the load client ended with ${String(code)}`);
  const report: LoadTestReport = JSON.parse(Buffer.concat(chunks).toString());
  if (report.summary.completed !== report.summary.requests) {
    throw new OctavoError(
      "internal_error",
      `requests failed: ${JSON.stringify(report.summary.failureExamples)}`,
    );
  }
  return report;
}

/** A closed loop of clients that each want `outputTokens` tokens for random prompts. */
export function closedLoop(
  baseUrl: string,
  concurrency: number,
  more: Partial<LoadTestOptions> = {},
): Omit<LoadTestOptions, "onProgress" | "onNotice" | "signal"> {
  return {
    baseUrl,
    endpoint: "completions",
    model: undefined,
    apiKey: undefined,
    dataset: { kind: "random" },
    arrival: { kind: "concurrency", concurrency },
    numRequests: 3 * concurrency,
    inputTokens: 256,
    outputTokens: 128,
    rangeRatio: 0,
    ignoreEos: true,
    temperature: 0,
    seed: 1,
    warmupRequests: 2,
    maxConcurrency: undefined,
    timeoutMs: 120_000,
    maxInputTokens: 100_000,
    goodput: undefined,
    extraBody: {},
    ...more,
  };
}
