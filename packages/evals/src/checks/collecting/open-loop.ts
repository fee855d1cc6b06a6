import { setMaxListeners } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { definedFields } from "@octavo/protocol";
import type { Answer } from "../../answers/answer.js";
import type { EvalCase } from "../../cases/eval-case.js";
import type { Target } from "../../targets/target.js";

/** A case and when it is due. */
export interface ScheduledCase {
  readonly evalCase: EvalCase;
  /** From the beginning of the run. */
  readonly atMs: number;
  readonly tenant?: string;
  readonly extraBody?: Readonly<Record<string, unknown>>;
}

/** A case of an open loop, with the answer that came. */
export interface SentCase {
  readonly scheduled: ScheduledCase;
  readonly answer: Answer;
}

interface OpenLoopOptions {
  readonly signal: AbortSignal;
  /** A request that is due while so many are under way waits; its latency counts from when it was due. */
  readonly maxInFlight?: number;
  readonly onAnswer?: (sent: SentCase) => void;
}

/** With more connections than this the client itself would be measured. */
const mostInFlight = 1024;

/**
 * Sends each case when it is due, whether or not earlier ones were answered: a slow server cannot slow its own load down,
 * and latencies count from when the request was due. The schedule is read as time goes on, so that it may depend on what
 * happens. Answers come back in its order.
 *
 * @param schedule in the order of time
 * @throws what the signal was aborted with
 */
export async function sendOpenLoop(
  target: Target,
  schedule: Iterable<ScheduledCase>,
  { signal: outer, maxInFlight = mostInFlight, onAnswer }: OpenLoopOptions,
): Promise<readonly SentCase[]> {
  // every request under way listens to it
  const signal = AbortSignal.any([outer]);
  setMaxListeners(0, signal);
  const beginEpochMs = Date.now();
  const beginMs = performance.now();
  const inFlight = new Set<Promise<void>>();
  const answered = new Map<number, SentCase>();
  let count = 0;
  try {
    for (const scheduled of schedule) {
      while (inFlight.size >= maxInFlight) await Promise.race(inFlight);
      const waitMs = beginMs + scheduled.atMs - performance.now();
      if (waitMs > 0) await sleep(waitMs, undefined, { signal });
      signal.throwIfAborted();
      const { evalCase, tenant, extraBody } = scheduled;
      const index = count++;
      const task: Promise<void> = target
        .answer(evalCase, {
          signal,
          scheduledEpochMs: beginEpochMs + scheduled.atMs,
          ...definedFields({ tenant, extraBody }),
        })
        .then((answer) => {
          const sent = { scheduled, answer };
          answered.set(index, sent);
          onAnswer?.(sent);
        })
        .finally(() => void inFlight.delete(task));
      // a task that rejects before it is awaited is handled by the final wait for all
      task.catch(() => undefined);
      inFlight.add(task);
    }
    await Promise.all(inFlight);
  } catch (thrown) {
    await Promise.allSettled(inFlight);
    throw thrown;
  }
  return Array.from({ length: count }, (_, index) => answered.get(index)!);
}

/** In the order of time. */
export function inOrder(schedule: readonly ScheduledCase[]): readonly ScheduledCase[] {
  return schedule.toSorted((a, b) => a.atMs - b.atMs);
}
