import { setTimeout as sleep } from "node:timers/promises";
import type { Target } from "../../targets/target.js";
import type { Observation } from "../observation.js";

interface Sample {
  readonly epochMs: number;
  readonly usage: number;
}

/** Today's name of the gauge and the one before; 1 is full. Over several engines, the fullest counts. */
const gauges = ["vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"] as const;

/** Watches how full a server's KV cache is, from its metrics, while requests run. */
export class CacheUsageWatch {
  readonly #samples: Sample[] = [];
  readonly #target: Target;
  readonly #stop = new AbortController();
  readonly #running: Promise<void>;

  constructor(target: Target, intervalMs: number) {
    this.#target = target;
    this.#running = this.#run(intervalMs);
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  /** The observation with the most that was in use while it was served, or nearest to it in time. */
  laidOver(observation: Observation): Observation {
    const from = observation.scheduledEpochMs;
    const to = from + observation.durationMs;
    const within = this.#samples.filter(({ epochMs }) => epochMs >= from && epochMs <= to);
    const distance = ({ epochMs }: Sample): number =>
      Math.min(Math.abs(epochMs - from), Math.abs(epochMs - to));
    const [nearest] = this.#samples.toSorted((a, b) => distance(a) - distance(b));
    const seen = within.length > 0 ? within : nearest === undefined ? [] : [nearest];
    if (seen.length === 0) return observation;
    return { ...observation, kvCacheUsage: Math.max(...seen.map(({ usage }) => usage)) };
  }

  async #run(intervalMs: number): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      try {
        const text = await this.#target.metrics?.(signal);
        const usage = text === undefined ? undefined : cacheUsageOf(text);
        if (usage === undefined) return;
        this.#samples.push({ epochMs: Date.now(), usage });
        await sleep(intervalMs, undefined, { signal });
      } catch {
        // stopped
      }
    }
  }
}

/** The gauge out of a page in Prometheus' text format; undefined where it is not there. */
export function cacheUsageOf(page: string): number | undefined {
  for (const gauge of gauges) {
    const values = page.split("\n").flatMap((line) => {
      if (!line.startsWith(gauge)) return [];
      const value = Number(/^(?:\{.*\})?\s+(\S+)/.exec(line.slice(gauge.length))?.[1] ?? Number.NaN);
      return value >= 0 && value <= 1 ? [value] : [];
    });
    if (values.length > 0) return Math.max(...values);
  }
  return undefined;
}
