import { LLM, type StepRecord } from "@octavo/engine";
import { createWebGpuBackend, type Gpu } from "@octavo/kernels-webgpu";
import type { Backend, ProgramSpec, StepPlan } from "@octavo/kernels";
import { checkPeerAnswer } from "../cpu/answers/check-answers.js";
import type { PeerAnswer } from "../cpu/answers/near-tie.js";
import { PromptSource } from "../cpu/workers/prompts.js";
import { fullSteps } from "../cpu/workers/steps.js";
import type { ShapeName } from "../cpu/models/shapes.js";
import { decode } from "../steps/step-costs.js";
import type { BenchCase } from "../support/results.js";
import { median } from "../support/median.js";
import type { AdapterLimits } from "./adapter-limits.js";
import { opTimesCase } from "./op-times.js";
import { multiplyAddsOf, readShareOf } from "./program-costs.js";
import { besideHelpers, type LoopDelay, withLoopDelay } from "./beside-helpers.js";

export interface GpuJob {
  readonly path: string;
  /** The same kernels in a model that the CPU answers within seconds. */
  readonly checkPath: string;
  readonly name: string;
  readonly streams: readonly number[];
  readonly promptTokens: number;
  readonly newTokens: number;
  /** Shares of the measured limits that are wanted, of hardware. */
  readonly targets?: { readonly decodeShare: number; readonly batchRatio: number };
  /** Of random weights. */
  readonly shape?: ShapeName;
}

/** Software adapters take seconds for a step: they show that every case runs. */
const sizesOf = ({
  isSoftware,
}: Gpu): { readonly [name in "context" | "prompt" | "answer" | "rounds"]: number } =>
  isSoftware
    ? { context: 2, prompt: 6, answer: 4, rounds: 1 }
    : { context: 16, prompt: 24, answer: 24, rounds: 3 };

const answers = new Map<string, Promise<PeerAnswer>>();

/** The CPU's greedy continuation of a prompt, with its likeliest tokens at each step; asked for once. */
function cpuAnswer(path: string, promptTokens: number, newTokens: number): Promise<PeerAnswer> {
  const known = answers.get(path) ?? askCpu(path, promptTokens, newTokens);
  answers.set(path, known);
  return known;
}

async function askCpu(path: string, promptTokens: number, newTokens: number): Promise<PeerAnswer> {
  await using llm = await LLM.load(path, { maxModelLen: 64 });
  const prompt = new PromptSource(llm.config.vocabSize).next(promptTokens);
  const { sequences } = await llm.generate(Int32Array.from(prompt), {
    temperature: 0,
    ignoreEos: true,
    maxTokens: newTokens,
    logprobs: 5,
  });
  const [sequence] = sequences;
  return {
    prompt,
    greedy: sequence?.tokens ?? [],
    top: (sequence?.logprobs ?? []).map(({ top }) =>
      top.map(({ token, logprob }) => [token, logprob] as const),
    ),
  };
}

/** Figures of one model on a GPU, once its answers are those of the CPU. */
export async function measureModel(gpu: Gpu, limits: AdapterLimits, job: GpuJob): Promise<BenchCase[]> {
  const { context, prompt, answer, rounds } = sizesOf(gpu);
  // A binding holds a layer's keys, of models of one layer too.
  const cacheBytes = Math.min(1 << 30, 2 * gpu.mostBytes);
  await checkPeerAnswer(job.checkPath, await cpuAnswer(job.checkPath, prompt, answer), {
    backend: createWebGpuBackend(gpu),
    kvCacheMemoryBytes: cacheBytes,
  });
  const watch: Watch = { timesOps: false };
  await using llm = await LLM.load(job.path, {
    backend: watched(createWebGpuBackend(gpu), watch),
    kvCacheMemoryBytes: cacheBytes,
    maxModelLen: job.promptTokens + job.newTokens + 32,
    maxNumBatchedTokens: Math.max(job.promptTokens, 128),
    maxPrefillStepMs: 0,
    maxNumSeqs: Math.max(...job.streams),
    enablePrefixCaching: false,
  });
  const source = new PromptSource(llm.config.vocabSize);
  const cases: BenchCase[] = [];
  const tokensPerSecond = new Map<number, number>();
  const encodeOf = new Map<number, number>();
  for (const streams of job.streams) {
    const measured = await measureDecode(gpu, llm, source.next(context), streams, job.newTokens);
    tokensPerSecond.set(streams, streams / measured.seconds);
    encodeOf.set(streams, measured.encodeMs);
    const name = `${job.name}: decode, ${streams} ${streams === 1 ? "stream" : "streams"}`;
    const { seconds, ...details } = measured;
    const stepMs = 1000 * seconds;
    const read = llm.weightBytes * (watch.program === undefined ? 1 : readShareOf(watch.program, streams));
    const share = (100 * read) / seconds / limits.copyBytes;
    cases.push(
      { name, unit: "tokens/s", octavo: streams / seconds, details: { ...details, stepMs } },
      ...(details.busyMs > 0
        ? [
            {
              name: `${name}: GPU without work, of a step`,
              unit: "%",
              octavo: 100 * (1 - details.busyMs / stepMs),
            },
          ]
        : []),
      {
        name: `${name}: weights read, of copy bandwidth`,
        unit: "%",
        octavo: share,
        ...(streams === 1 && job.targets !== undefined && { target: { atLeast: job.targets.decodeShare } }),
      },
    );
  }
  const most = Math.max(...job.streams);
  const beside = await besideHelpers(llm, () =>
    measureDecode(gpu, llm, source.next(context), most, job.newTokens),
  );
  const { seconds, ...details } = beside;
  cases.push({
    name: `${job.name}: decode, ${most} streams, while texts are tokenised and grammars compiled`,
    unit: "x of the tokens/s without",
    octavo: most / seconds / (tokensPerSecond.get(most) ?? Number.NaN),
    details: { ...details, stepMs: 1000 * seconds },
  });
  const { numLayers } = llm.config;
  const encodeMs = encodeOf.get(Math.min(...job.streams)) ?? Number.NaN;
  cases.push({
    name: `${job.name}: encoding a step, for 28 layers`,
    unit: "ms",
    octavo: (encodeMs * 28) / numLayers,
    ...(!gpu.isSoftware && { target: { atMost: 1.5 } }),
  });
  const [few, many] = [Math.min(...job.streams), Math.max(...job.streams)];
  if (few < many) {
    cases.push({
      name: `${job.name}: decode, ${many} streams over ${few}`,
      unit: "x",
      octavo: (tokensPerSecond.get(many) ?? 0) / (tokensPerSecond.get(few) ?? 1),
      ...(job.targets !== undefined && { target: { atLeast: job.targets.batchRatio } }),
    });
  }
  cases.push(
    ...(await prefillCases(
      llm,
      source,
      {
        multiplyAdds: watch.program === undefined ? 0 : multiplyAddsOf(watch.program),
        rounds,
        leastShare: gpu.matrixUnit === undefined ? 5 : 20,
      },
      limits,
      job,
    )),
  );
  if (!gpu.hasTimestamps) return cases;
  watch.timesOps = true;
  for (const streams of new Set([few, many]))
    cases.push(
      await opTimesCase(llm, {
        name: `${job.name}: decode, ${streams} ${streams === 1 ? "stream" : "streams"}`,
        prompt: source.next(context),
        streams,
        newTokens: Math.min(job.newTokens, 16) + 1,
        counts: "decode",
      }),
    );
  cases.push(
    await opTimesCase(llm, {
      name: `${job.name}: prefill of ${job.promptTokens} tokens`,
      prompt: source.next(job.promptTokens),
      streams: 1,
      newTokens: 1,
      counts: "prefill",
    }),
  );
  return cases;
}

async function prefillCases(
  llm: LLM,
  source: PromptSource,
  {
    multiplyAdds,
    rounds,
    leastShare,
  }: { readonly multiplyAdds: number; readonly rounds: number; readonly leastShare: number },
  limits: AdapterLimits,
  { name, promptTokens, targets }: GpuJob,
): Promise<BenchCase[]> {
  let seconds = Infinity;
  for (let round = 0; round < rounds; round++) {
    const prompt = Int32Array.from(source.next(promptTokens));
    const started = performance.now();
    await decode(llm.engine, prompt, 1, 1);
    seconds = Math.min(seconds, (performance.now() - started) / 1000);
  }
  const title = `${name}: prefill of ${promptTokens} tokens`;
  return [
    { name: title, unit: "tokens/s", octavo: promptTokens / seconds },
    {
      name: `${title}: products, of the f16 peak`,
      unit: "%",
      octavo: (100 * 2 * multiplyAdds * promptTokens) / seconds / limits.f16Operations,
      ...(targets !== undefined && { target: { atLeast: leastShare } }),
    },
  ];
}

const counted = ["encodeMs", "gapMs", "busyMs", "dispatches", "uploadedBytes", "readBytes"] as const;

type StepCosts = Record<(typeof counted)[number], number>;

/** Steps in which all streams decode and nothing else runs, and what they cost the processor. */
async function measureDecode(
  gpu: Gpu,
  llm: LLM,
  promptTokens: readonly number[],
  streams: number,
  newTokens: number,
): Promise<StepCosts & { readonly seconds: number; readonly loop: LoopDelay }> {
  const prompt = Int32Array.from(promptTokens);
  const steps: StepRecord[] = [];
  const costs: StepCosts[] = [];
  let before = { ...gpu.counters };
  using _ = llm.engine.observe({
    onStep(step) {
      steps.push(step);
      if (step.prefillTokens === 0 && step.decodeTokens === streams)
        costs.push(each((key) => gpu.counters[key] - before[key]));
      before = { ...gpu.counters };
    },
  });
  const { loop } = await withLoopDelay(async () => {
    await decode(llm.engine, prompt, streams, newTokens + 4);
    return {};
  });
  const { count, wallMs } = fullSteps(steps, streams, newTokens);
  return {
    seconds: wallMs / count / 1000,
    loop,
    ...each((key) =>
      typical(
        key,
        costs.map((cost) => cost[key]),
      ),
    ),
  };
}

/**
 * Busy times are told late, each with the step behind it: the first is a prompt's. The mean of the others holds, and is what a step's mean
 * time is held against.
 */
function typical(key: keyof StepCosts, values: readonly number[]): number {
  if (key !== "busyMs") return median(values);
  const own = values.slice(1);
  return own.reduce((sum, value) => sum + value, 0) / own.length;
}

function each(valueOf: (key: keyof StepCosts) => number): StepCosts {
  return Object.fromEntries(counted.map((key) => [key, valueOf(key)])) as StepCosts;
}

interface Watch {
  /** The first program that was compiled. */
  program?: ProgramSpec;
  /** Whether steps are to time their ops. */
  timesOps: boolean;
}

function watched(backend: Backend, watch: Watch): Backend {
  return new Proxy(backend, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key, target);
      if (typeof value !== "function") return value;
      return (...args: unknown[]) => {
        if (key === "compile") watch.program ??= args[0] as ProgramSpec;
        if (key === "execute" && watch.timesOps) args[2] = { ...(args[2] as StepPlan), wantOpTimes: true };
        return Reflect.apply(value, target, args) as unknown;
      };
    },
  });
}
