// Measures one job on node-llama-cpp in this process and prints the measurement as JSON. The task is the only argument.
import { OctavoError } from "@octavo/protocol/errors";
import type { Job, Measurement } from "../contenders/contender.js";
import { FIRST_TOKEN, type WorkerTask } from "../contenders/worker.js";
import { median } from "../../support/median.js";
import { PromptSource } from "./prompts.js";

/** The part of node-llama-cpp's interface that is used here (3.x). */
interface Llama {
  loadModel(options: { readonly modelPath: string }): Promise<Model>;
}
interface Model {
  createContext(options: {
    readonly sequences: number;
    readonly contextSize: number;
    readonly batchSize: number;
    readonly threads: number;
  }): Promise<Context>;
}
interface Context {
  getSequence(): Sequence;
}
interface Sequence {
  evaluateWithoutGeneratingNewTokens(tokens: readonly number[]): Promise<void>;
  evaluate(
    tokens: readonly number[],
    options: { readonly temperature: number; readonly yieldEogToken: boolean },
  ): AsyncIterable<number>;
  clearHistory(): Promise<void>;
}

const BATCH = 512;
const task: WorkerTask = JSON.parse(process.argv[2] ?? "{}");
const { job, threads } = task;
const source = new PromptSource(task.vocabSize);
const peer = (await import(task.peerModule ?? "")) as { getLlama(options: object): Promise<Llama> };
const llama = await peer.getLlama({ gpu: false, build: "never", logLevel: "error", maxThreads: threads });
const model = await llama.loadModel({ modelPath: task.modelPath });

/** Sequences with room for `length` tokens each. */
async function sequences(count: number, length: number): Promise<Sequence[]> {
  const batchSize = Math.max(BATCH, count);
  const context = await model.createContext({
    sequences: count,
    contextSize: length + 8,
    batchSize,
    threads,
    ...task.peerOptions,
  });
  return Array.from({ length: count }, () => context.getSequence());
}

async function generate(sequence: Sequence, tokens: readonly number[], count: number): Promise<void> {
  let generated = 0;
  for await (const _ of sequence.evaluate(tokens, { temperature: 0, yieldEogToken: true })) {
    generated += 1;
    if (generated >= count) return;
  }
}

async function prefill({ promptTokens, rounds }: Extract<Job, { kind: "prefill" }>): Promise<Measurement> {
  const [sequence] = await sequences(1, promptTokens);
  if (sequence === undefined) throw new OctavoError("internal_error", "no sequence was given");
  await sequence.evaluateWithoutGeneratingNewTokens(source.next(16));
  const speeds: number[] = [];
  for (let round = 0; round < rounds; round++) {
    await sequence.clearHistory();
    const prompt = source.next(promptTokens);
    const startMs = performance.now();
    await sequence.evaluateWithoutGeneratingNewTokens(prompt);
    speeds.push((promptTokens / (performance.now() - startMs)) * 1000);
  }
  return { prefillTokensPerSecond: median(speeds) };
}

/** Prompts go in one after the other, which keeps the batches full. */
async function decode(of: Extract<Job, { kind: "decode" }>): Promise<Measurement> {
  const all = await sequences(of.streams, of.promptTokens + of.newTokens);
  for (const sequence of all) {
    await sequence.evaluateWithoutGeneratingNewTokens(source.next(of.promptTokens - 1));
  }
  const startMs = performance.now();
  await Promise.all(all.map((sequence) => generate(sequence, source.next(1), of.newTokens)));
  const seconds = (performance.now() - startMs) / 1000;
  return {
    decodeTokensPerSecond: (of.streams * of.newTokens) / seconds,
    contextTokens: of.promptTokens + of.newTokens / 2,
  };
}

async function sharedPrefix(of: Extract<Job, { kind: "shared-prefix" }>): Promise<Measurement> {
  const all = await sequences(of.streams, of.promptTokens + of.newTokens);
  const prefix = source.next(of.prefixTokens);
  const startMs = performance.now();
  await Promise.all(
    all.map((sequence) =>
      generate(sequence, [...prefix, ...source.next(of.promptTokens - of.prefixTokens)], of.newTokens),
    ),
  );
  return {
    endToEndTokensPerSecond: (of.streams * of.newTokens) / ((performance.now() - startMs) / 1000),
  };
}

async function single(promptTokens: number, newTokens: number): Promise<Measurement> {
  const [sequence] = await sequences(1, promptTokens + newTokens);
  if (sequence === undefined) throw new OctavoError("internal_error", "no sequence was given");
  await generate(sequence, source.next(promptTokens), newTokens);
  process.stdout.write(`${FIRST_TOKEN}\n`);
  return {};
}

async function measure(): Promise<Measurement> {
  switch (job.kind) {
    case "prefill":
      return await prefill(job);
    case "decode":
      return await decode(job);
    case "shared-prefix":
      return await sharedPrefix(job);
    case "first-token":
      return await single(job.promptTokens, 1);
    case "memory":
      return await single(job.promptTokens, job.newTokens);
    case "server":
    case "waiting":
      throw new OctavoError("invalid_option", `node-llama-cpp is not measured by a job of kind ${job.kind}`);
  }
}

const measurement = await measure();
process.stdout.write(`${JSON.stringify(measurement)}\n`, () => process.exit(0));
