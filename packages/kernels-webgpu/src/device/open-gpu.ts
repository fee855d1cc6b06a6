import { OctavoError } from "@octavo/protocol/errors";
import { isSoftwareAdapter } from "./adapter-traits.js";
import { Gpu, type GpuUses, wantedFeatures } from "./gpu.js";

/** Kept reachable: Dawn aborts the process when its instance is collected. */
const instances: GPU[] = [];

/**
 * Dawn's switches: subgroup matrices and f16 on NVIDIA are behind them. Kernels write workgroup memory before they read it, so that zeroing
 * it would only take time: nine tenths of SwiftShader's time to compile.
 */
const dawnOptions = [
  "enable-dawn-features=allow_unsafe_apis,vulkan_enable_f16_on_nvidia,disable_workgroup_init",
  "disable-dawn-features=timestamp_quantization",
];

const wantedLimits = [
  "maxBufferSize",
  "maxStorageBufferBindingSize",
  "maxComputeWorkgroupStorageSize",
  "maxComputeInvocationsPerWorkgroup",
  "maxComputeWorkgroupSizeX",
  "maxStorageBuffersPerShaderStage",
] as const;

/** What every kernel may count on; WebGPU's own least is 16 KiB and 256. */
const leastLimits = {
  maxComputeWorkgroupStorageSize: 24 * 1024,
  maxComputeInvocationsPerWorkgroup: 256,
} as const;

/** What an adapter has too little of for the kernels; undefined where it has enough. */
export function missingLimit({ limits }: GPUAdapter): string | undefined {
  for (const limit of Object.keys(leastLimits) as (keyof typeof leastLimits)[])
    if (limits[limit] < leastLimits[limit])
      return `a ${limit} of ${limits[limit]}; Octavo's kernels need ${leastLimits[limit]}`;
  return undefined;
}

/** WebGPU of this process: the browser's, or Dawn's from the optional package `webgpu`. Rejects with `native_unavailable`. */
export async function webGpu(adapterName: string | undefined): Promise<GPU> {
  const { navigator } = globalThis as { readonly navigator?: { readonly gpu?: GPU } };
  if (navigator?.gpu !== undefined) return navigator.gpu;
  let dawn: { create: (options: string[]) => GPU };
  try {
    dawn = await import("webgpu");
  } catch (error) {
    throw new OctavoError(
      "native_unavailable",
      "The WebGPU backend needs Dawn, which a CPU installation does not bring: npm install webgpu@0.6.2",
      { cause: error },
    );
  }
  const instance = dawn.create([
    ...dawnOptions,
    ...(adapterName === undefined ? [] : [`adapter=${adapterName}`]),
  ]);
  instances.push(instance);
  return instance;
}

export interface GpuOptions extends GpuUses {
  /** Part of the adapter's name; default the fastest. */
  readonly adapter?: string | undefined;
  /** Leaves out adapters that compute on the CPU. */
  readonly hardwareOnly?: boolean;
}

/** Rejects with `native_unavailable`, with the names of those that there are. */
async function adapterOf(name: string | undefined): Promise<GPUAdapter> {
  let adapter: GPUAdapter | null;
  try {
    adapter = await (await webGpu(name)).requestAdapter({ powerPreference: "high-performance" });
  } catch (error) {
    if (error instanceof OctavoError) throw error;
    // Dawn lists the adapters that it has when none has the name.
    const names = [...String(error).matchAll(/name: '([^']*)'/g)].map(([, found]) => found);
    const there = names.length === 0 ? "There is none." : `There is ${names.join(", ")}.`;
    throw new OctavoError("native_unavailable", `No adapter is called "${name}". ${there}`, { cause: error });
  }
  if (adapter !== null) return adapter;
  throw new OctavoError(
    "native_unavailable",
    "No GPU can be used: no Vulkan, Metal or Direct3D driver offered an adapter.",
  );
}

/** Rejects with `native_unavailable` where the driver does not open it. */
async function deviceOf(adapter: GPUAdapter): Promise<GPUDevice> {
  try {
    return await adapter.requestDevice({
      requiredFeatures: wantedFeatures.filter((feature) => adapter.features.has(feature)),
      requiredLimits: Object.fromEntries(wantedLimits.map((limit) => [limit, adapter.limits[limit]])),
    });
  } catch (cause) {
    throw new OctavoError(
      "native_unavailable",
      `${adapter.info.description} could not be opened, as where other processes have all of it: ${OctavoError.from(cause).message}`,
      { cause },
    );
  }
}

/** Opens an adapter's device. Rejects with `native_unavailable`, saying what to do, as where it has no matrix units that were asked for. */
export async function openGpu({
  adapter: name,
  hardwareOnly = false,
  ...uses
}: GpuOptions = {}): Promise<Gpu> {
  const adapter = await adapterOf(name);
  if (hardwareOnly && isSoftwareAdapter(adapter.info)) {
    throw new OctavoError(
      "native_unavailable",
      `The only adapter, ${adapter.info.description}, computes on the CPU, where Octavo's own kernels are faster.`,
    );
  }
  const missing = missingLimit(adapter);
  if (missing !== undefined)
    throw new OctavoError("native_unavailable", `${adapter.info.description} has ${missing}.`);
  const gpu = new Gpu(await deviceOf(adapter), adapter.info, uses);
  if ((uses.matrixUnits ?? false) === false || gpu.matrixUnit !== undefined) return gpu;
  gpu[Symbol.dispose]();
  throw new OctavoError(
    "native_unavailable",
    `${adapter.info.description} has no subgroup matrices of f16 that Octavo's kernels can use.`,
  );
}
