import { OctavoError } from "@octavo/protocol";
import type { Random } from "@octavo/statistics";

/** When requests start. Open loop: arrivals do not wait for answers, so a slow server cannot slow its own load down. */
export type ArrivalSpec =
  | { readonly kind: "poisson"; readonly requestsPerSecond: number }
  /** Gamma gaps; burstiness is the shape: 1 is Poisson, below 1 burstier, above 1 more even. */
  | { readonly kind: "gamma"; readonly requestsPerSecond: number; readonly burstiness: number }
  | { readonly kind: "constant"; readonly requestsPerSecond: number }
  /** All at once. */
  | { readonly kind: "burst" }
  /** At the times the dataset carries, divided by `speedup`. */
  | { readonly kind: "trace"; readonly speedup: number }
  /** Closed loop: `concurrency` clients, each sending its next request when its last one ended. */
  | { readonly kind: "concurrency"; readonly concurrency: number };

/** Start of each of `count` requests, ms from the beginning; undefined for a closed loop. */
export function arrivalTimes(
  spec: ArrivalSpec,
  count: number,
  random: Random,
  traceMs: readonly (number | undefined)[] = [],
): readonly number[] | undefined {
  switch (spec.kind) {
    case "concurrency":
      return undefined;
    case "burst":
      return Array.from({ length: count }, () => 0);
    case "trace":
      return Array.from({ length: count }, (_, index) => {
        const at = traceMs[index];
        if (at === undefined) {
          throw new OctavoError(
            "invalid_option",
            "--arrival trace needs a dataset that carries arrival times",
            {
              param: "arrival",
            },
          );
        }
        return at / spec.speedup;
      });
    case "constant":
      return Array.from({ length: count }, (_, index) => (index * 1000) / spec.requestsPerSecond);
    case "poisson":
    case "gamma": {
      const shape = spec.kind === "gamma" ? spec.burstiness : 1;
      const meanMs = 1000 / spec.requestsPerSecond;
      let at = 0;
      return Array.from({ length: count }, (_, index) => {
        if (index > 0) at += random.gamma(shape, meanMs / shape);
        return at;
      });
    }
  }
}
