import type { AutoscalingConfig } from "./autoscaling-config.js";

/** Samples between two reports, as Ray's handles take them. */
const samplesPerReport = 5;

/**
 * Ongoing requests as Ray Serve's autoscaler sees them: sampled five times per `metrics_interval_s`, reported at that interval, and
 * aggregated over the samples of the last `look_back_period_s`, each of which holds until the next. What happened since the last
 * report is not known yet. Times are in seconds on the caller's clock.
 */
export class OngoingWindow {
  readonly #config: AutoscalingConfig;
  readonly #times: number[] = [];
  readonly #values: number[] = [];
  #numReported = 0;
  #nextSampleS = Number.NEGATIVE_INFINITY;
  #nextReportS = Number.NEGATIVE_INFINITY;

  constructor(config: AutoscalingConfig) {
    this.#config = config;
  }

  /** To be called often; takes a sample when one is due. */
  observe(nowS: number, ongoing: number): void {
    const { metrics_interval_s, look_back_period_s } = this.#config;
    if (nowS >= this.#nextSampleS) {
      this.#times.push(nowS);
      this.#values.push(ongoing);
      this.#nextSampleS = nextAfter(this.#nextSampleS, nowS, metrics_interval_s / samplesPerReport);
    }
    if (nowS < this.#nextReportS) return;
    this.#nextReportS = nextAfter(this.#nextReportS, nowS, metrics_interval_s);
    const old = this.#times.findIndex((time) => time >= nowS - look_back_period_s);
    if (old > 0) {
      this.#times.splice(0, old);
      this.#values.splice(0, old);
    }
    this.#numReported = this.#times.length;
  }

  /** Reports at once: a request that waits for the first replica does not wait for the interval too. */
  report(nowS: number, ongoing: number): void {
    this.#nextSampleS = nowS;
    this.#nextReportS = nowS;
    this.observe(nowS, ongoing);
  }

  total(nowS: number): number {
    const times = this.#times.slice(0, this.#numReported);
    return aggregated(times, this.#values, nowS, this.#config.aggregation_function);
  }
}

function nextAfter(last: number, now: number, interval: number): number {
  // in step, unless the caller was away
  return last + interval > now ? last + interval : now + interval;
}

/** Aggregates a step function: each value holds until the next time, the last one until `endS`. 0 if it is empty. */
export function aggregated(
  times: readonly number[],
  values: readonly number[],
  endS: number,
  aggregation: AutoscalingConfig["aggregation_function"],
): number {
  const [first] = times;
  if (first === undefined) return 0;
  if (aggregation !== "mean") return Math[aggregation](...values.slice(0, times.length));
  const last = times.at(-1) ?? first;
  // a clock that went back must not leave the last sample without weight
  const end = endS > last ? endS : last + 1e-3;
  let area = 0;
  for (const [at, time] of times.entries()) area += (values[at] ?? 0) * ((times[at + 1] ?? end) - time);
  return area / (end - first);
}
