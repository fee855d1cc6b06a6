import type { Observation } from "../observation.js";
import { byTime } from "../judging/time-blocks.js";

export type TrafficPattern = "burst" | "sustained" | "steady";
export const patterns: readonly TrafficPattern[] = ["steady", "sustained", "burst"];

interface PatternRule {
  readonly windowMs: number;
  readonly burstFactor: number;
  readonly sustainedShare: number;
  readonly requestsPerReplica: number;
}

export interface Labelled {
  readonly seen: Observation;
  readonly pattern: TrafficPattern;
}

/**
 * The published labels: in the window around a span, `burst` where the greatest queue depth is over `burstFactor` times the
 * mean, `sustained` where the mean is over `sustainedShare` of what the replicas take, else `steady`. Spans without a queue
 * depth have no label; one replica where their number is not known.
 */
export function labelPatterns(observations: readonly Observation[], rule: PatternRule): readonly Labelled[] {
  const sorted = byTime(observations).filter(({ queueDepth }) => queueDepth !== undefined);
  const half = rule.windowMs / 2;
  const greatest = new SlidingMaximum(sorted.map(({ queueDepth }) => queueDepth ?? 0));
  let [from, to, sum] = [0, 0, 0];
  return sorted.map((seen) => {
    while (to < sorted.length && sorted[to]!.scheduledEpochMs <= seen.scheduledEpochMs + half) {
      sum += sorted[to]!.queueDepth ?? 0;
      greatest.push(to++);
    }
    while (sorted[from]!.scheduledEpochMs < seen.scheduledEpochMs - half)
      sum -= sorted[from++]!.queueDepth ?? 0;
    const mean = sum / (to - from);
    const capacity = (seen.replicaCount ?? 1) * rule.requestsPerReplica;
    const pattern =
      greatest.since(from) > rule.burstFactor * mean
        ? "burst"
        : mean > rule.sustainedShare * capacity
          ? "sustained"
          : "steady";
    return { seen, pattern };
  });
}

/** Greatest value of a window that only moves on: indices of values that no later one exceeds. */
class SlidingMaximum {
  readonly #values: readonly number[];
  #queue: number[] = [];
  #head = 0;

  constructor(values: readonly number[]) {
    this.#values = values;
  }

  push(index: number): void {
    while (this.#queue.length > this.#head && this.#values[this.#queue.at(-1)!]! <= this.#values[index]!)
      this.#queue.pop();
    this.#queue.push(index);
  }

  since(index: number): number {
    while (this.#queue[this.#head]! < index) this.#head += 1;
    return this.#values[this.#queue[this.#head]!]!;
  }
}
