export type * from "./backend.js";
export { availableMemoryBytes } from "./machine/available-memory.js";
export { defaultThreadCount, processorCount } from "./machine/default-thread-count.js";
export { type CpuBackendOptions, createCpuBackend } from "./native/cpu-backend.js";
