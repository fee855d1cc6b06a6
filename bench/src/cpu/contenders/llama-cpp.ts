import { existsSync } from "node:fs";
import { join } from "node:path";
import { OctavoError } from "@octavo/protocol/errors";
import { median } from "../../support/median.js";
import { runMeasured } from "../run/measured-process.js";
import type { Contender, Job, MeasureContext, Measurement } from "./contender.js";
import { roomPerClient } from "./octavo-server.js";
import { measureServer, measureShared, type ServerJob, type ServerProcess } from "./served.js";
import { type PeerSetting, tuned } from "./tuned.js";

const PORT = 18_091;
const MAX_ATTEMPTS = 4;
const programs = { bench: "llama-bench", batched: "llama-batched-bench", server: "llama-server" } as const;

export function hasServer(folder: string): boolean {
  return existsSync(join(folder, programs.server));
}

/** Flash attention and the type of cached keys and values decide its speed, differently on every machine. */
const settings: readonly PeerSetting<readonly string[]>[] = [
  { name: "defaults", value: [] },
  { name: "-fa off", value: ["-fa", "off"] },
  { name: "bf16 KV", value: ["-ctk", "bf16", "-ctv", "bf16"] },
  { name: "-fa off, bf16 KV", value: ["-fa", "off", "-ctk", "bf16", "-ctv", "bf16"] },
  { name: "-fa on, q8_0 KV", value: ["-fa", "on", "-ctk", "q8_0", "-ctv", "q8_0"] },
];

/** Where the tools are, and the flags that all of them are given. */
interface Install {
  readonly folder: string;
  readonly flags: readonly string[];
}

/** llama.cpp's own tools in a folder; its shared libraries may lie beside them. What needs a server is left out without one. */
export function llamaCpp(folder: string, isTuned: boolean): Contender {
  for (const program of [programs.bench, programs.batched]) {
    if (!existsSync(join(folder, program))) {
      throw new OctavoError("invalid_option", `there is no ${program} in ${folder}`, { param: "llama-cpp" });
    }
  }
  return tuned({
    name: "llama.cpp",
    settings: isTuned ? settings : settings.slice(0, 1),
    supports: (job) =>
      job.kind === "server" || job.kind === "shared-prefix"
        ? hasServer(folder) && !(job.kind === "shared-prefix" && job.through === "library")
        : job.kind !== "waiting",
    async measure(job, context, flags) {
      const install = { folder, flags };
      switch (job.kind) {
        case "prefill":
          return await prefill(install, job, context);
        case "decode":
          return await decode(install, job, context);
        case "first-token":
          return await firstToken(install, job.promptTokens, context);
        case "memory":
          return await memory(install, job, context);
        case "server":
          return await measureServer(llamaServer(install, job, context), job);
        case "shared-prefix":
          return await measureShared(job, (load) => llamaServer(install, load, context));
        case "waiting":
          throw new OctavoError("invalid_option", "llama.cpp's tools have no queue to measure");
      }
    },
  });
}

/** The environment in which a folder's programs find the libraries beside them. */
function libraryPath(folder: string): Readonly<Record<string, string>> {
  return { LD_LIBRARY_PATH: folder };
}

/** One pass over the prompt per round, logits of the last token alone. */
async function prefill(
  install: Install,
  { promptTokens, rounds }: Extract<Job, { kind: "prefill" }>,
  context: MeasureContext,
): Promise<Measurement> {
  const lines = await batched(install, context, {
    context: contextOf(promptTokens),
    prompts: Array.from({ length: rounds }, () => promptTokens),
    newTokens: 1,
    streams: 1,
  });
  return { prefillTokensPerSecond: median(lines.map((line) => numberOf(line, "speed_pp"))) };
}

/**
 * Every stream has keys and values of its own (-no-kvu); the prompt is computed once and copied into each (-pps), which changes
 * nothing for the decode steps and saves minutes. States of recurrent layers cannot be copied so: each stream computes its own.
 */
async function decode(
  install: Install,
  { streams, promptTokens, newTokens }: Extract<Job, { kind: "decode" }>,
  context: MeasureContext,
): Promise<Measurement> {
  const lines = await batched(
    install,
    context,
    { context: streams * contextOf(promptTokens + newTokens), prompts: [promptTokens], newTokens, streams },
    ["-no-kvu", ...(context.model.shape.recurrence === undefined ? ["-pps"] : [])],
  );
  return {
    decodeTokensPerSecond: median(lines.map((line) => numberOf(line, "speed_tg"))),
    contextTokens: promptTokens + newTokens / 2,
  };
}

/** From start to end of a process that loads the model and runs one short prompt, without llama-bench's warm-up. */
async function firstToken(
  { folder }: Install,
  promptTokens: number,
  { model, threads }: MeasureContext,
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
    env: libraryPath(folder),
  });
  return { firstTokenMs: record.wallMs };
}

async function memory(
  { folder }: Install,
  { promptTokens, newTokens }: Extract<Job, { kind: "memory" }>,
  context: MeasureContext,
): Promise<Measurement> {
  const record = await runMeasured({
    command: join(folder, programs.batched),
    args: batchedArgs(context, {
      context: contextOf(promptTokens + newTokens),
      prompts: [promptTokens],
      newTokens,
      streams: 1,
    }),
    env: libraryPath(folder),
  });
  return {
    ...(record.peakBytes !== undefined && { peakBytes: record.peakBytes }),
    ...(record.anonymousBytes !== undefined && { anonymousBytes: record.anonymousBytes }),
  };
}

export function llamaServer(
  { folder, flags }: Install,
  job: ServerJob,
  { model, threads }: MeasureContext,
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
      ...flags,
    ],
    env: libraryPath(folder),
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
  { folder, flags }: Install,
  context: MeasureContext,
  run: BatchedRun,
  more: readonly string[] = [],
): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const spec = {
    command: join(folder, programs.batched),
    args: [...batchedArgs(context, run), ...more, ...flags],
    env: libraryPath(folder),
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
