import { fileURLToPath } from "node:url";
import { OctavoError } from "@octavo/protocol/errors";
import { runMeasured } from "../run/measured-process.js";
import { type Job, type MeasureContext, type Measurement, metrics } from "./contender.js";

/** What a worker process is told: its one argument, as JSON. */
export interface WorkerTask {
  readonly job: Job;
  readonly modelPath: string;
  readonly vocabSize: number;
  readonly contextLength: number;
  readonly threads: number;
  /** The module to import, for a peer. */
  readonly peerModule?: string;
  /** Options of the peer's own, as its settings have them. */
  readonly peerOptions?: object;
}

/** A line a worker prints at its first token. */
export const FIRST_TOKEN = "first-token";

type PeerTask = Pick<WorkerTask, "peerModule" | "peerOptions">;

/** Runs a job in a fresh Node process. */
export async function measureInWorker(
  script: string,
  job: Job,
  context: MeasureContext,
  peer: PeerTask = {},
): Promise<Measurement> {
  const path = fileURLToPath(new URL(`../workers/${script}`, import.meta.url));
  return await measureWith({ command: process.execPath, script: path }, job, context, peer);
}

/** Runs a job in a fresh process of an interpreter; the worker's last line is its measurement as JSON. */
export async function measureWith(
  { command, script }: { readonly command: string; readonly script: string },
  job: Job,
  { model, threads, env }: MeasureContext,
  peer: PeerTask,
): Promise<Measurement> {
  const task: WorkerTask = {
    job,
    modelPath: model.path,
    vocabSize: model.shape.vocabSize,
    contextLength: model.shape.contextLength,
    threads,
    ...peer,
  };
  const record = await runMeasured(
    { command, args: [script, JSON.stringify(task)], env },
    (line) => line === FIRST_TOKEN,
  );
  return {
    ...parseMeasurement(record.lines.at(-1) ?? ""),
    ...(record.markMs !== undefined && { firstTokenMs: record.markMs }),
    ...(record.peakBytes !== undefined && { peakBytes: record.peakBytes }),
    ...(record.anonymousBytes !== undefined && { anonymousBytes: record.anonymousBytes }),
  };
}

function parseMeasurement(line: string): Measurement {
  let parsed: unknown;
  try {
    parsed = JSON.parse(line);
  } catch {
    parsed = undefined;
  }
  if (typeof parsed !== "object" || parsed === null) {
    throw new OctavoError("internal_error", `a worker's last line is no measurement: ${line.slice(0, 200)}`);
  }
  const known: readonly string[] = metrics;
  return Object.fromEntries(
    Object.entries(parsed).filter(([key, value]) => known.includes(key) && typeof value === "number"),
  );
}
