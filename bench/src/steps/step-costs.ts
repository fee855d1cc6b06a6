import { readFileSync } from "node:fs";
import { getHeapStatistics } from "node:v8";
import type { Engine, GenerationRequest, StepRecord } from "@octavo/engine";
import { plainParams } from "@octavo/engine/testing";
import { median } from "../support/median.js";

/** What a run's steps cost beside the native call; medians over those that decoded one token for each stream. */
export interface StepOverhead {
  readonly numSteps: number;
  /** From the start of a step to the start of the next. */
  readonly stepMs: number;
  /** Part of the above in which the native side had nothing to do. */
  readonly betweenCallsMs: number;
  /** Processor time of the JavaScript thread per step, overlapped with the native call or not. */
  readonly threadMs: number;
  /** Bytes of JavaScript heap allocated per generated token. */
  readonly heapBytesPerToken: number;
}

/** The thread's clock is a file: reading it after every step would be a cost of its own. */
const stepsPerReading = 8;

/** Watches an engine's steps while `run` goes on. */
export async function stepCosts(
  engine: Engine,
  streams: number,
  run: () => Promise<void>,
): Promise<StepOverhead> {
  const records: StepRecord[] = [];
  let heapBytes = 0;
  let heapSteps = 0;
  let lastHeap = 0;
  let numDecodes = 0;
  const threadMs: number[] = [];
  const watch = engine.observe({
    onStep: (step) => {
      records.push(step);
      if (isDecode(step, streams) && numDecodes++ % stepsPerReading === 0)
        threadMs.push(javaScriptThreadMs());
      const heap = getHeapStatistics().used_heap_size;
      // a smaller heap than before means that a collection came between
      if (isDecode(step, streams) && heap >= lastHeap && lastHeap > 0) {
        heapBytes += heap - lastHeap;
        heapSteps += 1;
      }
      lastHeap = heap;
    },
  });
  await run();
  watch[Symbol.dispose]();
  const stepMs: number[] = [];
  const betweenCallsMs: number[] = [];
  for (const [index, step] of records.entries()) {
    const next = records[index + 1];
    if (next === undefined || !isDecode(step, streams)) continue;
    stepMs.push(next.startMs - step.startMs);
    betweenCallsMs.push(next.startMs - step.startMs - step.computeMs);
  }
  return {
    numSteps: stepMs.length,
    stepMs: median(stepMs),
    betweenCallsMs: median(betweenCallsMs),
    threadMs: ((threadMs.at(-1) ?? 0) - (threadMs[0] ?? 0)) / (threadMs.length - 1) / stepsPerReading,
    heapBytesPerToken: heapBytes / Math.max(1, heapSteps) / streams,
  };
}

function isDecode(step: StepRecord, streams: number): boolean {
  return step.prefillTokens === 0 && step.decodeTokens === streams;
}

let numRequests = 0;

/** A request for exactly `maxTokens` greedy tokens. */
export function decodeRequest(promptTokens: Int32Array, maxTokens: number, priority = 0): GenerationRequest {
  numRequests += 1;
  return {
    kind: "generate",
    requestId: `steps-${numRequests}`,
    promptTokens,
    priority,
    params: { ...plainParams, maxTokens },
  };
}

/** Reads `streams` requests of `maxTokens` tokens to their ends. */
export async function decode(
  engine: Engine,
  promptTokens: Int32Array,
  streams: number,
  maxTokens: number,
): Promise<void> {
  await Promise.all(
    Array.from({ length: streams }, async (_, index) => {
      const prompt = promptTokens.slice();
      prompt[0] = index;
      for await (const event of engine.generate(decodeRequest(prompt, maxTokens)))
        if (event.kind === "done") return;
    }),
  );
}

/** Processor time of this thread where the system tells (Linux), else the time in which its event loop was busy. */
function javaScriptThreadMs(): number {
  try {
    const [nanoseconds = "0"] = readFileSync(`/proc/self/task/${process.pid}/schedstat`, "utf8").split(" ");
    return Number(nanoseconds) / 1e6;
  } catch {
    return performance.eventLoopUtilization().active;
  }
}
