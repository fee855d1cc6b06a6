export type * from "./backend.js";
export { kvHeadBytes, kvLayersOf, kvTokenBytes } from "./kv-bytes.js";
export { availableMemoryBytes } from "./machine/available-memory.js";
export { defaultThreadCount, processorCount } from "./machine/default-thread-count.js";
export { lockFile, recordFaults } from "./machine/process-faults.js";
export { type CpuBackendOptions, createCpuBackend } from "./cpu/cpu-backend.js";
export { isRecurrent, type RecurrentShape, stateWidths } from "./state-widths.js";
export { weightTypes } from "./weights.js";
