// Measures one job on the engine in this process and prints the measurement as JSON. The task is the only argument.
import { LLM, type LoadOptions, type StepRecord } from "@octavo/engine";
import { OctavoError } from "@octavo/protocol/errors";
import type { Job, Measurement } from "../contenders/contender.js";
import { FIRST_TOKEN, type WorkerTask } from "../contenders/worker.js";
import { packedFolder } from "../models/packed-folder.js";
import { median } from "../../support/median.js";
import { PromptSource } from "./prompts.js";
import { fullSteps, numFullSteps, WARM_UP } from "./steps.js";

const task: WorkerTask = JSON.parse(process.argv[2] ?? "{}");
const { job } = task;
const source = new PromptSource(task.vocabSize);
const prompt = (length: number): Int32Array => Int32Array.from(source.next(length));
const greedy = { temperature: 0, ignoreEos: true } as const;

/** Room for the job's sequences and no more: the peers are given the same. */
function sizes(): LoadOptions {
  const [streams, length] = roomOf(job);
  return {
    numThreads: task.threads,
    maxNumSeqs: streams,
    maxModelLen: length,
    // Only steps without prompts are counted, so the prompts may go in as fast as they can.
    ...(job.kind === "decode" && { maxPrefillStepMs: 0 }),
    ...(job.kind === "first-token" && job.keepsPacked && { weightCache: packedFolder(task.modelPath) }),
    ...(job.kind === "waiting" && { maxQueuedRequests: job.waiting + job.streams }),
  };
}

function roomOf(of: Job): readonly [streams: number, maxModelLen: number] {
  switch (of.kind) {
    case "prefill":
      return [1, of.promptTokens + 16];
    case "decode":
    case "shared-prefix":
      return [of.streams, of.promptTokens + of.newTokens + extraTokens(of)];
    case "first-token":
      return [1, of.promptTokens + 16];
    case "memory":
      return [1, of.promptTokens + of.newTokens];
    case "waiting":
      return [of.streams, Math.min(task.contextLength, 8192)];
    case "server":
      throw new OctavoError("invalid_option", "a server is measured over HTTP, not by this worker");
  }
}

/** The engine computes at least this many prompt tokens a step beside running streams. */
const LEAST_PREFILL = 128;

/**
 * Streams are admitted over several steps; the first ones run on until the last has joined and its steps are counted.
 * They are stopped then.
 */
function extraTokens(of: { readonly streams: number; readonly promptTokens: number }): number {
  return of.streams === 1 ? 4 : 16 + Math.ceil((of.streams * of.promptTokens) / LEAST_PREFILL);
}

async function prefill(
  llm: LLM,
  { promptTokens, rounds }: Extract<Job, { kind: "prefill" }>,
): Promise<Measurement> {
  const speeds: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const tokens = prompt(promptTokens);
    const startMs = performance.now();
    await llm.generate(tokens, { ...greedy, maxTokens: 1 });
    speeds.push((promptTokens / (performance.now() - startMs)) * 1000);
  }
  return { prefillTokensPerSecond: median(speeds) };
}

async function decode(llm: LLM, of: Extract<Job, { kind: "decode" }>): Promise<Measurement> {
  const steps: StepRecord[] = [];
  const enough = new AbortController();
  using _ = llm.engine.observe({
    onStep(step) {
      steps.push(step);
      if (numFullSteps(steps, of.streams) > of.newTokens + WARM_UP) enough.abort();
    },
  });
  const maxTokens = of.newTokens + extraTokens(of);
  await Promise.all(
    Array.from({ length: of.streams }, () =>
      llm
        .generate(prompt(of.promptTokens), { ...greedy, maxTokens, signal: enough.signal })
        .result()
        .catch((error: unknown) => {
          if (!enough.signal.aborted) throw error;
        }),
    ),
  );
  const full = fullSteps(steps, of.streams, of.newTokens);
  return {
    decodeTokensPerSecond: (of.streams * full.count) / (full.wallMs / 1000),
    outsideNativeShare: 1 - full.computeMs / full.wallMs,
    contextTokens: of.promptTokens + of.newTokens / 2,
  };
}

async function sharedPrefix(llm: LLM, of: Extract<Job, { kind: "shared-prefix" }>): Promise<Measurement> {
  const steps: StepRecord[] = [];
  using _ = llm.engine.observe({ onStep: (step) => steps.push(step) });
  const prefix = prompt(of.prefixTokens);
  const prompts = Array.from({ length: of.streams }, () =>
    Int32Array.from([...prefix, ...prompt(of.promptTokens - of.prefixTokens)]),
  );
  const startMs = performance.now();
  await llm.generate(prompts, { ...greedy, maxTokens: of.newTokens });
  const wallMs = performance.now() - startMs;
  const computed = steps.reduce((sum, step) => sum + step.prefillTokens, 0);
  const total = of.streams * of.promptTokens;
  return {
    endToEndTokensPerSecond: (of.streams * of.newTokens) / (wallMs / 1000),
    prefillSaved: (total - computed) / ((of.streams - 1) * of.prefixTokens),
  };
}

async function firstToken(llm: LLM, promptTokens: number): Promise<Measurement> {
  await llm.generate(prompt(promptTokens), { ...greedy, maxTokens: 1 });
  process.stdout.write(`${FIRST_TOKEN}\n`);
  return {};
}

async function measure(llm: LLM): Promise<Measurement> {
  switch (job.kind) {
    case "prefill":
      return await prefill(llm, job);
    case "decode":
      return await decode(llm, job);
    case "shared-prefix":
      return await sharedPrefix(llm, job);
    case "first-token":
      return await firstToken(llm, job.promptTokens);
    case "memory":
      await llm.generate(prompt(job.promptTokens), { ...greedy, maxTokens: job.newTokens });
      return {};
    case "waiting": {
      // Reads the engine's testing parts, which no start is to be measured with.
      const { stepCostRatio } = await import("./waiting-requests.js");
      return { stepCostRatio: await stepCostRatio(llm, job, prompt) };
    }
    case "server":
      throw new OctavoError("invalid_option", "a server is measured over HTTP, not by this worker");
  }
}

await using llm = await LLM.load(task.modelPath, sizes());
// The peers' tools run a first pass before they measure, too.
if (job.kind !== "first-token" && job.kind !== "memory") {
  await llm.packed;
  await llm.generate(prompt(16), { ...greedy, maxTokens: 2 });
}
const measurement = await measure(llm);
process.stdout.write(`${JSON.stringify(measurement)}\n`);
