import { existsSync } from "node:fs";
import { join } from "node:path";
import { OctavoError } from "@octavo/protocol/errors";
import { median } from "../../support/median.js";
import { runMeasured } from "../run/measured-process.js";
import type { Contender, Job, MeasureContext, Measurement } from "./contender.js";
import { roomPerClient } from "./octavo-server.js";
import { measureServer, type ServerJob, type ServerProcess } from "./served.js";

const PORT = 18_091;
const MAX_ATTEMPTS = 4;
const programs = { bench: "llama-bench", batched: "llama-batched-bench", server: "llama-server" } as const;

export function hasServer(folder: string): boolean {
  return existsSync(join(folder, programs.server));
}

/** llama.cpp's own tools in a folder; its shared libraries may lie beside them. What needs a server is left out without one. */
export function llamaCpp(folder: string): Contender {
  for (const program of [programs.bench, programs.batched]) {
    if (!existsSync(join(folder, program))) {
      throw new OctavoError("invalid_option", `there is no ${program} in ${folder}`, { param: "llama-cpp" });
    }
  }
  const env = libraryPath(folder);
  return {
    name: "llama.cpp",
    supports: ({ kind }) =>
      kind === "server" || kind === "shared-prefix" ? hasServer(folder) : kind !== "waiting",
    async measure(job, context) {
      switch (job.kind) {
        case "prefill":
          return await prefill(folder, job, context, env);
        case "decode":
          return await decode(folder, job, context, env);
        case "first-token":
          return await firstToken(folder, job.promptTokens, context, env);
        case "memory":
          return await memory(folder, job, context, env);
        case "server":
          return await measureServer(llamaServer(folder, job, context, env), job);
        case "shared-prefix":
          return await sharedOverHttp(folder, job, context, env);
        case "waiting":
          throw new OctavoError("invalid_option", "llama.cpp's tools have no queue to measure");
      }
    },
  };
}

function libraryPath(folder: string): Env {
  return { LD_LIBRARY_PATH: folder };
}

type Env = Readonly<Record<string, string>>;

/** One pass over the prompt per round, logits of the last token alone. */
async function prefill(
  folder: string,
  { promptTokens, rounds }: Extract<Job, { kind: "prefill" }>,
  context: MeasureContext,
  env: Env,
): Promise<Measurement> {
  const lines = await batched(folder, context, env, {
    context: contextOf(promptTokens),
    prompts: Array.from({ length: rounds }, () => promptTokens),
    newTokens: 1,
    streams: 1,
  });
  return { prefillTokensPerSecond: median(lines.map((line) => numberOf(line, "speed_pp"))) };
}

/**
 * Every stream has keys and values of its own (-no-kvu); the prompt is computed once and copied into each (-pps), which changes
 * nothing for the decode steps and saves minutes.
 */
async function decode(
  folder: string,
  { streams, promptTokens, newTokens }: Extract<Job, { kind: "decode" }>,
  context: MeasureContext,
  env: Env,
): Promise<Measurement> {
  const lines = await batched(
    folder,
    context,
    env,
    { context: streams * contextOf(promptTokens + newTokens), prompts: [promptTokens], newTokens, streams },
    ["-no-kvu", "-pps"],
  );
  return {
    decodeTokensPerSecond: median(lines.map((line) => numberOf(line, "speed_tg"))),
    contextTokens: promptTokens + newTokens / 2,
  };
}

/** From start to end of a process that loads the model and runs one short prompt, without llama-bench's warm-up. */
async function firstToken(
  folder: string,
  promptTokens: number,
  { model, threads }: MeasureContext,
  env: Env,
): Promise<Measurement> {
  const record = await runMeasured({
    command: join(folder, programs.bench),
    args: [
      "-m",
      model.path,
      "-t",
      String(threads),
      "-p",
      String(promptTokens),
      "-n",
      "0",
      "-r",
      "1",
      "--no-warmup",
      "-o",
      "jsonl",
    ],
    env,
  });
  return { firstTokenMs: record.wallMs };
}

async function memory(
  folder: string,
  { promptTokens, newTokens }: Extract<Job, { kind: "memory" }>,
  context: MeasureContext,
  env: Env,
): Promise<Measurement> {
  const record = await runMeasured({
    command: join(folder, programs.batched),
    args: batchedArgs(context, {
      context: contextOf(promptTokens + newTokens),
      prompts: [promptTokens],
      newTokens,
      streams: 1,
    }),
    env,
  });
  return {
    ...(record.peakBytes !== undefined && { peakBytes: record.peakBytes }),
    ...(record.anonymousBytes !== undefined && { anonymousBytes: record.anonymousBytes }),
  };
}

/** All streams at once against llama-server: the only one of its tools that takes prompts with a common beginning. */
async function sharedOverHttp(
  folder: string,
  of: Extract<Job, { kind: "shared-prefix" }>,
  context: MeasureContext,
  env: Env,
): Promise<Measurement> {
  const job: ServerJob = {
    kind: "server",
    clients: of.streams,
    requests: of.streams,
    requestsPerSecond: undefined,
    sharedTokens: of.prefixTokens,
    inputTokens: of.promptTokens - of.prefixTokens,
    outputTokens: of.newTokens,
  };
  const measured = await measureServer(llamaServer(folder, job, context, env), job);
  return { endToEndTokensPerSecond: measured.serverTokensPerSecond ?? Number.NaN };
}

export function llamaServer(
  folder: string,
  job: ServerJob,
  { model, threads }: MeasureContext,
  env: Env = libraryPath(folder),
): ServerProcess {
  return {
    command: join(folder, programs.server),
    args: [
      "-m",
      model.path,
      "-t",
      String(threads),
      "-tb",
      String(threads),
      "-np",
      String(job.clients),
      "-c",
      String(job.clients * roomPerClient(job)),
      "--host",
      "127.0.0.1",
      "--port",
      String(PORT),
    ],
    env,
    baseUrl: `http://127.0.0.1:${PORT}`,
    healthUrl: `http://127.0.0.1:${PORT}/health`,
  };
}

/** Room for a sequence: contexts come in multiples of 256 positions, and shorter ones are cut. */
function contextOf(tokens: number): number {
  return Math.ceil((tokens + 8) / 256) * 256;
}

interface BatchedRun {
  readonly context: number;
  readonly prompts: readonly number[];
  readonly newTokens: number;
  readonly streams: number;
}

async function batched(
  folder: string,
  context: MeasureContext,
  env: Env,
  run: BatchedRun,
  more: readonly string[] = [],
): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const spec = {
    command: join(folder, programs.batched),
    args: [...batchedArgs(context, run), ...more],
    env,
  };
  // It prints from a thread that is not waited for at its end (common/log.cpp), so its last lines may be lost.
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const { lines } = await runMeasured(spec);
    const results = lines.filter((line) => line.startsWith("{"));
    if (results.length > 0) return results.map((line): Readonly<Record<string, unknown>> => JSON.parse(line));
  }
  throw new OctavoError("engine_failed", `${spec.command} ${spec.args.join(" ")} printed no result`);
}

function batchedArgs({ model, threads }: MeasureContext, run: BatchedRun): string[] {
  return [
    "-m",
    model.path,
    "-t",
    String(threads),
    "-tb",
    String(threads),
    "-c",
    String(run.context),
    "-npp",
    run.prompts.join(","),
    "-ntg",
    String(run.newTokens),
    "-npl",
    String(run.streams),
    "--output-format",
    "jsonl",
  ];
}

function numberOf(line: Readonly<Record<string, unknown>>, key: string): number {
  const value = line[key];
  if (typeof value === "number" && Number.isFinite(value)) return value;
  throw new OctavoError("engine_failed", `${programs.batched} printed no ${key}: ${JSON.stringify(line)}`);
}
