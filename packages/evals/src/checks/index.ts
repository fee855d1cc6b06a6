export * from "./check.js";
export * from "./define-check.js";
export * from "./observation.js";
export type { TestBed, TestBedNeed } from "./test-bed.js";
export {
  observationOf,
  observationsFromSpans,
  type SpanReading,
  type SpanSelection,
  wantedCalls,
} from "../spans/from-spans.js";
export * from "../spans/gather-spans.js";
export { readSpans, readSpanValues, spanFilesOf } from "../spans/read-spans.js";
export { type Fact, factNames } from "../spans/fact-names.js";
export { recordedContent } from "../spans/recorded-content.js";
export { recordedExchanges } from "../spans/recorded-exchange.js";
export type { SpanRecord } from "../spans/span-record.js";
export { recordedTarget, spanDataset } from "../spans/span-dataset.js";
export * from "./collecting/from-answer.js";
export * from "./collecting/from-headers.js";
export * from "./judging/false-alarms.js";
export { comparePaired, type PairedComparison, type PairedScore } from "./judging/paired-comparison.js";
export { decide, overallVerdict, type TestedEffect } from "./judging/verdicts.js";
export { evictionBurstCheck, evictionCheck } from "./eviction/check.js";
export type { EvictionBurstSettings, EvictionSettings } from "./eviction/settings.js";
export { quantizationCheck } from "./quantization/check.js";
export type { QuantizationCheckSettings } from "./quantization/settings.js";
export { replicaSkewCheck } from "./replica-skew/check.js";
export type { ReplicaSkewSettings } from "./replica-skew/settings.js";
export { tailCheck } from "./tail/check.js";
export type { TailSettings } from "./tail/settings.js";
export { checkNamed, type CheckName, checkNames, checkTable } from "./table.js";
export { autoscalingLagCheck } from "./autoscaling-lag/check.js";
export type { AutoscalingLagSettings } from "./autoscaling-lag/settings.js";
export { fairnessCheck, tenantFairnessCheck } from "./fairness/check.js";
export type { FairnessSettings, TenantFairnessSettings } from "./fairness/settings.js";
export { jitterCheck } from "./jitter/check.js";
export type { JitterSettings } from "./jitter/settings.js";
export { trafficDriftCheck } from "./traffic-drift/check.js";
export type { TrafficDriftSettings } from "./traffic-drift/settings.js";
export { ObservationJournal } from "./collecting/observation-journal.js";
export { LeastQueueRouter } from "./collecting/least-queue-router.js";
export { observeSent } from "./collecting/observe-sent.js";
export { type ScheduledCase, sendOpenLoop, type SentCase } from "./collecting/open-loop.js";
export { type Arrival, arrivalsOf, type ClientLoad, composedArrivals } from "./collecting/arrivals.js";
