export type * from "./backend.js";
export { defaultThreadCount } from "./default-thread-count.js";
export { type CpuBackendOptions, createCpuBackend } from "./native/cpu-backend.js";
