import type { Gpu } from "../device/gpu.js";
import { type GpuOptions, openGpu, webGpu } from "../device/open-gpu.js";
import { openTestGpu } from "./software-gpu.js";

/** What stands between the test adapter and who opens it. */
export interface LesserAdapter {
  /** Optional features that it still has. */
  readonly features?: readonly GPUFeatureName[];
  readonly limits?: Partial<Record<keyof GPUSupportedLimits, number>>;
  /** Answers in place of the adapter. */
  readonly requestDevice?: () => Promise<GPUDevice>;
}

/** Runs with another WebGPU than the process's own, as browsers bring one. */
export async function withWebGpu<T>(gpu: Pick<GPU, "requestAdapter">, run: () => Promise<T>): Promise<T> {
  const before = Object.getOwnPropertyDescriptor(globalThis, "navigator");
  Object.defineProperty(globalThis, "navigator", { value: { gpu }, configurable: true });
  try {
    return await run();
  } finally {
    if (before === undefined) Reflect.deleteProperty(globalThis, "navigator");
    else Object.defineProperty(globalThis, "navigator", before);
  }
}

/** The test adapter, opened as if it could do less; or the reason why there is none. */
export async function openLesserGpu(
  { features = [], limits = {}, requestDevice }: LesserAdapter,
  options: GpuOptions = {},
): Promise<Gpu | string> {
  const whole = await openTestGpu();
  if (typeof whole === "string") return whole;
  whole[Symbol.dispose]();
  const adapter = await (await webGpu(undefined)).requestAdapter();
  if (adapter === null) return "no WebGPU adapter";
  const limited = new Proxy(adapter.limits, {
    get: (target, name) => limits[name as keyof typeof limits] ?? Reflect.get(target, name, target),
  });
  const lesser = {
    info: adapter.info,
    features: new Set(features.filter((feature) => adapter.features.has(feature))),
    limits: limited,
    requestDevice: requestDevice ?? ((asked: GPUDeviceDescriptor) => adapter.requestDevice(asked)),
  } as unknown as GPUAdapter;
  return withWebGpu({ requestAdapter: () => Promise.resolve(lesser) }, () => openGpu(options));
}
