import { OctavoError } from "@octavo/protocol";

/** When detectors raise an alert. */
export interface DetectorThresholds {
  /** The 99th percentile of gaps between tokens, over that of the last 24 hours. */
  readonly decodeLatencyFactor: number;
  /** How far the prefix cache's hit ratio may fall below that of the last 24 hours, 0 to 1. */
  readonly cacheHitRatioDrop: number;
  /** Share of the KV cache's blocks in use, for half a minute. */
  readonly kvUsage: number;
  /** A request that waited this long while later ones were served was starved. */
  readonly starvationMs: number;
  /** A tenant's 99th percentile over that of all. */
  readonly tenantLatencyFactor: number;
  /** Each sequential test raises at most one false alarm in this many years. */
  readonly falseAlarmYears: number;
  /** Least age of a baseline. */
  readonly minBaselineMs: number;
}

export const defaultDetectorThresholds: DetectorThresholds = {
  decodeLatencyFactor: 2,
  cacheHitRatioDrop: 0.15,
  kvUsage: 0.9,
  starvationMs: 10_000,
  tenantLatencyFactor: 1.5,
  falseAlarmYears: 10,
  minBaselineMs: 1_800_000,
};

const ranges: Readonly<Record<keyof DetectorThresholds, readonly [number, number]>> = {
  decodeLatencyFactor: [1, 1000],
  cacheHitRatioDrop: [0.01, 1],
  kvUsage: [0.01, 1],
  starvationMs: [1, 86_400_000],
  tenantLatencyFactor: [1, 1000],
  falseAlarmYears: [0.001, 1_000_000],
  minBaselineMs: [0, 86_400_000],
};

export const thresholdNames: readonly string[] = Object.keys(ranges);

/** Fills in defaults and checks every value; throws `invalid_option` naming the threshold. */
export function resolveThresholds(given: Readonly<Record<string, number>>): DetectorThresholds {
  for (const [name, value] of Object.entries(given)) {
    const range = Object.entries(ranges).find(([known]) => known === name)?.[1];
    if (range !== undefined && value >= range[0] && value <= range[1]) continue;
    const message =
      range === undefined
        ? `there is no threshold ${name.slice(0, 100)}; they are ${thresholdNames.join(", ")}`
        : `${name}: expected a number from ${range[0]} to ${range[1]}, got ${value}`;
    throw new OctavoError("invalid_option", `detectorThresholds: ${message}`, {
      param: "detectorThresholds",
    });
  }
  return { ...defaultDetectorThresholds, ...given };
}
