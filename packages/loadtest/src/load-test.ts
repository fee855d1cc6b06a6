import { readFile } from "node:fs/promises";
import { OctavoError } from "@octavo/protocol";
import { Agent, request } from "undici";
import type { LoadDataset, LoadCase } from "./datasets/dataset.js";
import { fileDataset } from "./datasets/file.js";
import { syntheticDataset } from "./datasets/synthetic.js";
import { type TraceFormat, traceDataset } from "./datasets/trace.js";
import { syntheticText } from "./datasets/words.js";
import { type ArrivalSpec, arrivalTimes } from "./load/arrivals.js";
import { type TargetSpec, send } from "./load/client.js";
import { type Progress, runLoad } from "./load/run.js";
import { type GoodputBounds, type LoadSummary, summarizeRun } from "./report/summary.js";
import { Random } from "@octavo/statistics";

export type DatasetSpec =
  | { readonly kind: "random" }
  | { readonly kind: "shared-prefix"; readonly prefixTokens: number; readonly numPrefixes: number }
  | { readonly kind: "file"; readonly path: string }
  | { readonly kind: "trace"; readonly path: string; readonly format: TraceFormat };

export interface LoadTestOptions {
  /** With or without the trailing "/v1". */
  readonly baseUrl: string;
  readonly endpoint: "completions" | "chat";
  /** undefined takes the first model the server lists. */
  readonly model: string | undefined;
  readonly apiKey: string | undefined;
  readonly dataset: DatasetSpec;
  readonly arrival: ArrivalSpec;
  readonly numRequests: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly rangeRatio: number;
  readonly ignoreEos: boolean;
  readonly temperature: number;
  readonly seed: number;
  /** Sent one after another before anything is counted. */
  readonly warmupRequests: number;
  readonly maxConcurrency: number | undefined;
  readonly timeoutMs: number;
  readonly maxInputTokens: number;
  readonly goodput: GoodputBounds | undefined;
  readonly extraBody: Readonly<Record<string, unknown>>;
  readonly onProgress?: (progress: Progress) => void;
  readonly onNotice?: (message: string) => void;
  readonly signal?: AbortSignal;
}

export interface LoadTestReport {
  readonly target: { readonly baseUrl: string; readonly endpoint: string; readonly model: string };
  readonly load: {
    readonly dataset: DatasetSpec;
    readonly arrival: ArrivalSpec;
    readonly numRequests: number;
    readonly inputTokens: number;
    readonly outputTokens: number;
    readonly seed: number;
    readonly warmupRequests: number;
    readonly tokensPerWord: number;
  };
  readonly startedAt: string;
  readonly summary: LoadSummary;
}

/** Loads an OpenAI-compatible server and reports what its clients saw. Throws only when no run was possible. */
export async function loadTest(options: LoadTestOptions): Promise<LoadTestReport> {
  checkOptions(options);
  const baseUrl = versioned(options.baseUrl);
  await using dispatcher = disposable(
    new Agent({
      connections: null,
      pipelining: 1,
      keepAliveTimeout: 30_000,
      connect: { timeout: options.timeoutMs },
    }),
  );
  const target: TargetSpec = {
    baseUrl,
    endpoint: options.endpoint,
    model: options.model ?? (await firstModel(baseUrl, options, dispatcher.agent)),
    apiKey: options.apiKey,
    timeoutMs: options.timeoutMs,
    dispatcher: dispatcher.agent,
    temperature: options.temperature,
    extraBody: options.extraBody,
  };
  const tokensPerWord = options.dataset.kind === "file" ? 1 : await calibrate(target, options.seed);
  const dataset = await openDataset(options, tokensPerWord);
  const cases = dataset.cases(options.numRequests);
  const random = new Random(options.seed).fork(1);
  const startsMs = arrivalTimes(
    options.arrival,
    cases.length,
    random,
    cases.map((item) => item.atMs),
  );

  await warmUp(target, options, tokensPerWord);
  const startedAt = new Date().toISOString();
  const outcomes = await runLoad({
    cases,
    startsMs,
    maxConcurrency: concurrencyOf(options),
    send: (item, index, scheduledMs) => send(target, item, index, scheduledMs),
    ...(options.onProgress ? { onProgress: options.onProgress } : {}),
    ...(options.signal ? { signal: options.signal } : {}),
  });
  if (outcomes.length === 0)
    throw new OctavoError("request_cancelled", "stopped before any request was sent");
  return {
    target: { baseUrl, endpoint: options.endpoint, model: target.model },
    load: {
      dataset: options.dataset,
      arrival: options.arrival,
      numRequests: options.numRequests,
      inputTokens: options.inputTokens,
      outputTokens: options.outputTokens,
      seed: options.seed,
      warmupRequests: options.warmupRequests,
      tokensPerWord,
    },
    startedAt,
    summary: summarizeRun(outcomes, options.goodput),
  };
}

function checkOptions(options: LoadTestOptions): void {
  const positive = {
    numRequests: options.numRequests,
    inputTokens: options.inputTokens,
    outputTokens: options.outputTokens,
  };
  for (const [param, value] of Object.entries(positive)) {
    if (!Number.isInteger(value) || value < 1) {
      throw new OctavoError("invalid_option", `${param} must be a whole number of at least 1, not ${value}`, {
        param,
      });
    }
  }
  const { arrival } = options;
  const rates = {
    requestsPerSecond: "requestsPerSecond" in arrival ? arrival.requestsPerSecond : 1,
    burstiness: arrival.kind === "gamma" ? arrival.burstiness : 1,
    concurrency: arrival.kind === "concurrency" ? arrival.concurrency : 1,
    speedup: arrival.kind === "trace" ? arrival.speedup : 1,
  };
  for (const [param, value] of Object.entries(rates)) {
    if (!Number.isFinite(value) || value <= 0) {
      throw new OctavoError("invalid_option", `${param} must be above 0, not ${value}`, { param });
    }
  }
  if (!(options.rangeRatio >= 0 && options.rangeRatio < 1)) {
    throw new OctavoError("invalid_option", `rangeRatio must be in [0, 1), not ${options.rangeRatio}`, {
      param: "rangeRatio",
    });
  }
}

function versioned(baseUrl: string): string {
  const trimmed = baseUrl.replace(/\/+$/, "");
  if (!/^https?:\/\//.test(trimmed)) {
    throw new OctavoError(
      "invalid_option",
      `the base URL must begin with http:// or https://, not "${baseUrl}"`,
      {
        param: "base-url",
      },
    );
  }
  return /\/v\d+$/.test(trimmed) ? trimmed : `${trimmed}/v1`;
}

function disposable(agent: Agent): AsyncDisposable & { readonly agent: Agent } {
  return { agent, [Symbol.asyncDispose]: () => agent.destroy() };
}

async function firstModel(baseUrl: string, options: LoadTestOptions, agent: Agent): Promise<string> {
  const url = `${baseUrl}/models`;
  const headers = options.apiKey === undefined ? {} : { authorization: `Bearer ${options.apiKey}` };
  const response = await request(url, {
    dispatcher: agent,
    headers,
    headersTimeout: options.timeoutMs,
  }).catch((cause: unknown) => {
    throw new OctavoError(
      "not_found",
      `no server answers at ${url}: ${cause instanceof Error ? cause.message : String(cause)}`,
      {
        cause,
        param: "base-url",
      },
    );
  });
  const body: unknown = await response.body.json().catch(() => undefined);
  const data: unknown = typeof body === "object" && body !== null && "data" in body ? body.data : undefined;
  const first: unknown = Array.isArray(data) ? data[0] : undefined;
  if (typeof first === "object" && first !== null && "id" in first && typeof first.id === "string")
    return first.id;
  throw new OctavoError(
    "model_not_found",
    [401, 403].includes(response.statusCode)
      ? `${url} answers ${response.statusCode}: give the server's key with --api-key`
      : `${url} answers ${response.statusCode} and lists no model; name one with --model`,
    {
      param: "model",
    },
  );
}

/** Tokens the served tokenizer needs per synthetic word, from the server's own count on a 64-word prompt. */
async function calibrate(target: TargetSpec, seed: number): Promise<number> {
  const words = 64;
  const prompt = syntheticText(new Random(seed).fork(2), words, 1);
  const outcome = await send(target, { prompt, maxTokens: 1, ignoreEos: false }, -1, performance.now());
  if (outcome.failure) {
    throw new OctavoError(
      "invalid_request",
      `the server refused the calibration request: ${outcome.failure.message}`,
    );
  }
  return outcome.promptTokens === undefined ? 1.3 : outcome.promptTokens / words;
}

async function openDataset(options: LoadTestOptions, tokensPerWord: number): Promise<LoadDataset> {
  const { dataset } = options;
  const common = {
    seed: options.seed,
    inputTokens: options.inputTokens,
    outputTokens: options.outputTokens,
    rangeRatio: options.rangeRatio,
    tokensPerWord,
    ignoreEos: options.ignoreEos,
  };
  switch (dataset.kind) {
    case "random":
    case "shared-prefix":
      return syntheticDataset({ ...common, ...dataset });
    case "file":
      return fileDataset(await readDataset(dataset.path), { ...common, path: dataset.path });
    case "trace": {
      const trace = traceDataset(await readDataset(dataset.path), {
        ...common,
        path: dataset.path,
        format: dataset.format,
        maxInputTokens: options.maxInputTokens,
        maxOutputTokens: options.outputTokens,
      });
      if (trace.clipped > 0)
        options.onNotice?.(`${trace.clipped} rows of the trace were cut to the given lengths`);
      return trace;
    }
  }
}

async function readDataset(path: string): Promise<string> {
  return readFile(path, "utf8").catch((cause: unknown) => {
    throw new OctavoError("invalid_option", `cannot read the dataset ${path}`, { param: "dataset", cause });
  });
}

async function warmUp(target: TargetSpec, options: LoadTestOptions, tokensPerWord: number): Promise<void> {
  const random = new Random(options.seed).fork(3);
  for (let i = 0; i < options.warmupRequests; i++) {
    const item: LoadCase = {
      prompt: syntheticText(random, options.inputTokens, tokensPerWord),
      maxTokens: Math.min(options.outputTokens, 16),
      ignoreEos: options.ignoreEos,
    };
    const outcome = await send(target, item, -1, performance.now());
    if (outcome.failure)
      throw new OctavoError("invalid_request", `a warm-up request failed: ${outcome.failure.message}`);
  }
}

function concurrencyOf(options: LoadTestOptions): number {
  if (options.arrival.kind === "concurrency") return options.arrival.concurrency;
  return options.maxConcurrency ?? Number.POSITIVE_INFINITY;
}
