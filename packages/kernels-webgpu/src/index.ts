export { Gpu, type GpuCounters } from "./device/gpu.js";
export { type AdapterReport, listAdapters } from "./device/list-adapters.js";
export { type GpuOptions, openGpu } from "./device/open-gpu.js";
export { createWebGpuBackend, type WebGpuBackendOptions } from "./webgpu-backend.js";
