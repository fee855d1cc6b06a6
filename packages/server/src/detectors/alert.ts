import type { Cause } from "@octavo/engine";

export type DetectorName =
  | "decode_latency"
  | "cache_hit_ratio"
  | "kv_usage"
  | "scheduler_starvation"
  | "tenant_latency";

/**
 * `sequential`: a test that is valid under continuous monitoring, at the configured false alarm rate. `rule`: a ratio or level
 * that was crossed.
 */
export type DetectorForm = "sequential" | "rule";

/** Causes, from the records of the affected steps and requests. */
export const alertReasons = [
  "prefill-burst",
  "kv-eviction",
  "kv-pressure",
  "scheduler-starve",
  "batch-growth",
  "slow-compute",
  "host-stall",
  "traffic-change",
  "unknown",
] as const;
export type AlertReason = (typeof alertReasons)[number];

/** The identity of an alert: at most one of each fires at a time. */
export interface AlertIdentity {
  readonly detector: DetectorName;
  readonly form: DetectorForm;
  readonly tenant: string | undefined;
}

/** What a detector found. */
export interface Finding extends AlertIdentity {
  readonly reason: AlertReason;
  /** All reasons and their shares, greatest first. */
  readonly reasons: readonly ReasonShare[];
  /** Measured, usual and allowed value, in `unit`. */
  readonly value: number;
  readonly baseline: number | undefined;
  readonly threshold: number;
  readonly unit: "seconds" | "ratio";
  readonly samples: number;
  /** Only of a sequential test: the e-value against "no change". */
  readonly evidence: number | undefined;
  /** The engine's id of the most affected request. */
  readonly exampleRequestId: string | undefined;
}

export interface ReasonShare {
  readonly reason: AlertReason;
  readonly share: number;
}

export interface AlertExample {
  readonly requestId: string;
  /** Requests that contributed, by the engine's evidence. */
  readonly culprits: readonly { readonly requestId: string; readonly tenant: string | undefined }[];
}

/** Undefined for causes within the request itself. */
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

export function alertReasonOf(cause: Cause): AlertReason | undefined {
  return reasonsByCause[cause];
}
