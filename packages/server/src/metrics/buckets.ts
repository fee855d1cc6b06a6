/** vLLM's bucket bounds, in seconds or tokens. Source: vllm/v1/metrics/loggers.py. */

export const requestLatencyBuckets = [
  0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680,
];

export const tokenLatencyBuckets = [
  0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80,
];

export const timeToFirstTokenBuckets = [
  0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640,
  2560,
];

export const iterationTokenBuckets = [1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384];

export const sequencesPerRequestBuckets = [1, 2, 5, 10, 20];

/** 1, 2, 5, 10, 20, 50 ... up to and not above `max`. */
export function oneTwoFiveBuckets(max: number): readonly number[] {
  const buckets: number[] = [];
  for (let magnitude = 1; ; magnitude *= 10) {
    for (const step of [1, 2, 5]) {
      if (magnitude * step > max) return buckets;
      buckets.push(magnitude * step);
    }
  }
}
