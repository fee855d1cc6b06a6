export { type DatasetSpec, loadTest, type LoadTestOptions, type LoadTestReport } from "./load-test.js";
export type { ArrivalSpec } from "./load/arrivals.js";
export type { TraceFormat } from "./datasets/trace.js";
export type { Progress } from "./load/run.js";
export type { GoodputBounds, Summary } from "./report/summary.js";
export type { Distribution, Estimate } from "./statistics/quantiles.js";
export { createProgressLine } from "./report/progress.js";
export { renderTable } from "./report/table.js";
