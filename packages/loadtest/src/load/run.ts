import { setTimeout as sleep } from "node:timers/promises";
import type { LoadCase } from "../datasets/dataset.js";
import type { RequestOutcome } from "./outcome.js";

export interface RunSpec {
  readonly cases: readonly LoadCase[];
  /** Start of each case in ms from the beginning; undefined for a closed loop. */
  readonly startsMs: readonly number[] | undefined;
  /** Requests in flight at most: the clients of a closed loop, a safety bound on an open one. */
  readonly maxConcurrency: number;
  readonly send: (item: LoadCase, index: number, scheduledMs: number) => Promise<RequestOutcome>;
  readonly onProgress?: (progress: Progress) => void;
  readonly signal?: AbortSignal;
}

export interface Progress {
  readonly sent: number;
  readonly ended: number;
  readonly failed: number;
  readonly total: number;
}

/** Sends every case at its time and collects the outcomes in the cases' order. An abort stops sending, not what is in flight. */
export async function runLoad(spec: RunSpec): Promise<readonly RequestOutcome[]> {
  const outcomes: RequestOutcome[] = [];
  const inFlight = new Set<Promise<void>>();
  const began = performance.now();
  let sent = 0;
  let failed = 0;

  for (const [index, item] of spec.cases.entries()) {
    while (inFlight.size >= spec.maxConcurrency) await Promise.race(inFlight);
    const start = spec.startsMs?.[index];
    if (start !== undefined) await until(began + start, spec.signal);
    if (spec.signal?.aborted) break;
    const scheduledMs = start === undefined ? performance.now() : began + start;
    sent++;
    const task: Promise<void> = spec.send(item, index, scheduledMs).then((outcome) => {
      outcomes.push(outcome);
      if (outcome.failure) failed++;
      inFlight.delete(task);
      spec.onProgress?.({ sent, ended: outcomes.length, failed, total: spec.cases.length });
    });
    inFlight.add(task);
  }
  await Promise.all(inFlight);
  return outcomes.toSorted((a, b) => a.index - b.index);
}

async function until(timeMs: number, signal: AbortSignal | undefined): Promise<void> {
  const wait = timeMs - performance.now();
  if (wait <= 0) return;
  try {
    await sleep(wait, undefined, signal ? { signal } : {});
  } catch {
    // aborted: the caller looks at the signal
  }
}
