export { type DatasetSpec, loadTest, type LoadTestOptions, type LoadTestReport } from "./load-test.js";
export type { ArrivalSpec } from "./load/arrivals.js";
export { type TraceFormat, traceRows } from "./datasets/trace.js";
export type { Progress } from "./load/run.js";
export type { GoodputBounds, LoadSummary } from "./report/summary.js";
export type { Distribution, LoadEstimate } from "./statistics/quantiles.js";
export { renderLoadSummary } from "./report/table.js";
