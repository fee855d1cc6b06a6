import type { LLM } from "@octavo/engine";
import type { OpTime } from "@octavo/kernels";
import { decode } from "../steps/step-costs.js";
import type { BenchCase } from "../support/results.js";

/** What ops of one kind took of a step, in the mean. */
interface OpShare {
  readonly op: string;
  readonly dispatches: number;
  readonly ms: number;
  readonly percent: number;
}

/** What is run to be timed: all streams decode, or prompts are read. */
export interface TimedRun {
  readonly name: string;
  readonly prompt: readonly number[];
  readonly streams: number;
  readonly newTokens: number;
  readonly counts: "decode" | "prefill";
}

/** A case of the time that ops take on the GPU, by kind. Steps must be told to time them. */
export async function opTimesCase(llm: LLM, run: TimedRun): Promise<BenchCase> {
  const { name, prompt, streams, newTokens, counts } = run;
  const steps: (readonly OpTime[])[] = [];
  using _ = llm.engine.observe({
    onStep({ opTimes, prefillTokens, decodeTokens }) {
      const isDecode = prefillTokens === 0 && decodeTokens === streams;
      const isPrefill = prefillTokens > 0 && decodeTokens === 0;
      if (opTimes !== undefined && (counts === "decode" ? isDecode : isPrefill)) steps.push(opTimes);
    },
  });
  await decode(llm.engine, Int32Array.from(prompt), streams, newTokens);
  const ops = sharesOf(steps);
  const sum = ops.reduce((total, { ms }) => total + ms, 0);
  return {
    name: `${name}: ops, each kind in passes of its own`,
    unit: "ms a step",
    octavo: sum,
    details: { ops },
  };
}

/** Those that take longest first. */
export function sharesOf(steps: readonly (readonly OpTime[])[]): OpShare[] {
  const kinds = new Map<string, { count: number; milliseconds: number }>();
  for (const { op, count, milliseconds } of steps.flat()) {
    const kind = kinds.get(op) ?? { count: 0, milliseconds: 0 };
    kinds.set(op, { count: kind.count + count, milliseconds: kind.milliseconds + milliseconds });
  }
  const all = [...kinds.values()].reduce((sum, { milliseconds }) => sum + milliseconds, 0);
  return [...kinds]
    .map(([op, { count, milliseconds }]) => ({
      op,
      dispatches: count / steps.length,
      ms: milliseconds / steps.length,
      percent: (100 * milliseconds) / all,
    }))
    .toSorted((a, b) => b.ms - a.ms);
}

/** A table for each case that has one. */
export function opTables(cases: readonly BenchCase[]): string[] {
  return cases.flatMap(({ name, unit, octavo, details }) => {
    const ops = details?.["ops"] as readonly OpShare[] | undefined;
    if (ops === undefined) return [];
    const width = Math.max(0, ...ops.map(({ op }) => op.length));
    const rows = ops.map(
      ({ op, dispatches, ms, percent }) =>
        `  ${op.padEnd(width)}  ${dispatches.toFixed(0).padStart(5)} dispatches  ${ms.toFixed(3).padStart(10)} ms  ${percent.toFixed(1).padStart(5)} %`,
    );
    return [`${name}, ${octavo.toFixed(3)} ${unit}`, ...rows];
  });
}
