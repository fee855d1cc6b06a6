import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { type LanguageModel, LLM, type LoadOptions } from "@octavo/engine";
import { type LoadTestOptions, type LoadTestReport } from "@octavo/loadtest";
import { OctavoError } from "@octavo/protocol/errors";
import { createServer } from "@octavo/server";

export const embeddedModel = fileURLToPath(new URL("../../../models/octavo-mini", import.meta.url));

/** Serves a model from this process for as long as `use` runs. */
export async function withServer<T>(
  model: string,
  options: LoadOptions,
  use: (baseUrl: string, llm: LLM) => Promise<T>,
): Promise<T> {
  await using llm = await LLM.load(model, options);
  return await serve(llm, (baseUrl) => use(baseUrl, llm));
}

/** Serves a loaded model; it stays loaded. */
export async function serve<T>(model: LanguageModel, use: (baseUrl: string) => Promise<T>): Promise<T> {
  await using server = createServer({
    model,
    config: { port: 0, logLevel: "silent", accessLog: false },
  });
  const { url } = await server.listen();
  return await use(url);
}

/** Throws unless greedy answers are the same alone and among 31 others. */
export async function checkAnswers(llm: LLM): Promise<void> {
  const prompts = Array.from({ length: 32 }, (_, index) =>
    llm.renderChat({ messages: [{ role: "user", content: `Hello, I am number ${index}. Who are you?` }] }),
  );
  const greedy = { temperature: 0, maxTokens: 32, ignoreEos: true };
  const together = await llm.generate(prompts, greedy);
  for (const index of [0, 13, 31]) {
    const alone = await llm.generate(prompts[index] ?? "", greedy);
    assert.equal(together[index]?.text, alone.text, `prompt ${index} differs between batch and solo`);
  }
}

/** Runs a load test in a process of its own, so that the client's work is not in the measured one. */
export async function loadFromOutside(options: OutsideLoad): Promise<LoadTestReport> {
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

type OutsideLoad = Omit<LoadTestOptions, "onProgress" | "onNotice" | "signal">;

/** A closed loop of clients that each want `outputTokens` tokens for random prompts; `more` changes any of it. */
export function closedLoop(
  baseUrl: string,
  concurrency: number,
  more: Partial<LoadTestOptions> = {},
): OutsideLoad {
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
