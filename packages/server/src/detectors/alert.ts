import type { Cause } from "@octavo/engine";

export type DetectorName =
  | "decode_latency"
  | "cache_hit_ratio"
  | "kv_usage"
  | "scheduler_starvation"
  | "tenant_latency";

/**
 * `sequential`: a test that may be looked at all the time and raises false alarms as seldom as configured. `rule`: a ratio or
 * a level that was crossed.
 */
export type DetectorForm = "sequential" | "rule";

/** What it was due to, by the records of the steps and requests that it was found in. */
export type AlertReason =
  | "prefill-burst"
  | "kv-eviction"
  | "kv-pressure"
  | "scheduler-starve"
  | "batch-growth"
  | "slow-compute"
  | "host-stall"
  | "traffic-change"
  | "unknown";

export const alertReasons: readonly AlertReason[] = [
  "prefill-burst",
  "kv-eviction",
  "kv-pressure",
  "scheduler-starve",
  "batch-growth",
  "slow-compute",
  "host-stall",
  "traffic-change",
  "unknown",
];

/** What tells alerts apart: at most one of each fires at a time. */
export interface AlertIdentity {
  readonly detector: DetectorName;
  readonly form: DetectorForm;
  readonly tenant: string | undefined;
}

/** What a detector found. */
export interface Finding extends AlertIdentity {
  readonly reason: AlertReason;
  /** Other reasons had a part as well: shares of the whole, greatest first. */
  readonly reasons: readonly ReasonShare[];
  /** What was measured, what is usual and what would have been allowed, in `unit`. */
  readonly value: number;
  readonly baseline: number | undefined;
  readonly threshold: number;
  readonly unit: "seconds" | "ratio";
  readonly samples: number;
  /** Of a sequential test: how many times likelier than without a change what was seen has become to see. */
  readonly evidence: number | undefined;
  /** The engine's id of the request in which it showed most. */
  readonly exampleRequestId: string | undefined;
}

export interface ReasonShare {
  readonly reason: AlertReason;
  readonly share: number;
}

export interface AlertExample {
  readonly requestId: string;
  /** Who had a hand in it, as the engine's evidence names them. */
  readonly culprits: readonly { readonly requestId: string; readonly tenant: string | undefined }[];
}

/** Causes that a request has of its own are nobody's fault, and give no reason. */
const reasonsByCause: Readonly<Record<Cause, AlertReason | undefined>> = {
  preparation: undefined,
  grammar: undefined,
  prefill: undefined,
  queue: "scheduler-starve",
  not_scheduled: "scheduler-starve",
  eviction: "kv-eviction",
  preemption: "kv-eviction",
  prefill_burst: "prefill-burst",
  decode: "batch-growth",
  batch_growth: "batch-growth",
  slow_compute: "slow-compute",
  host: "host-stall",
  forgotten: "unknown",
};

export function reasonOf(cause: Cause): AlertReason | undefined {
  return reasonsByCause[cause];
}
