export type { TokenPrice, Cost, Crossing } from "./cost.js";
export { type KvFormat, kvFormats } from "./formats/kv-formats.js";
export { type ComputeType, type Hardware, hardwareTable } from "./hardware/hardware.js";
export { measureCpu } from "./hardware/measure-cpu.js";
export { type FormatPlan, type MachinePlan, makePlan, type Plan, type PlanOptions } from "./plan.js";
export { renderPlan } from "./report/table.js";
export type { Roofline } from "./roofline.js";
