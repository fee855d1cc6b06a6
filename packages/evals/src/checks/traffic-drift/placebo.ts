import type { Observation } from "../observation.js";
import type { Placebo } from "../judging/false-alarms.js";
import { byTime } from "../judging/time-blocks.js";
import type { TrafficDriftSettings } from "./settings.js";

/** Stretches of production's time, each dealt to one of the sides, where they follow each other without a break. */
export function driftPlacebo({ production, evaluation, numBlocks }: TrafficDriftSettings): Placebo {
  return (observations, random) => {
    const sorted = byTime(observations.filter(({ condition }) => condition === production));
    const beginMs = sorted[0]?.scheduledEpochMs ?? 0;
    const blockMs = ((sorted.at(-1)?.scheduledEpochMs ?? 0) - beginMs) / (2 * numBlocks);
    if (blockMs <= 0) return sorted;
    const order = random.shuffle(Array.from({ length: 2 * numBlocks }, (_, index) => index));
    const places = new Map(order.map((block, place) => [block, place]));
    return sorted.map((seen): Observation => {
      const at = seen.scheduledEpochMs - beginMs;
      const block = Math.min(2 * numBlocks - 1, Math.floor(at / blockMs));
      const place = places.get(block)!;
      return {
        ...seen,
        condition: place < numBlocks ? production : evaluation,
        scheduledEpochMs: beginMs + at + ((place % numBlocks) - block) * blockMs,
      };
    });
  };
}
