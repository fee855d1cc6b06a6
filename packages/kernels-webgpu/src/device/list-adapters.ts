import { OctavoError } from "@octavo/protocol/errors";
import { isSoftware, webGpu } from "./open-gpu.js";

/** What an adapter can do, or why there is none. */
export type AdapterReport =
  | {
      readonly name: string;
      readonly features: readonly string[];
      /** Bytes that one tensor's part may take. */
      readonly mostBindingBytes: number;
      /** Why `auto` does not use it. */
      readonly unusedBecause?: string;
    }
  | { readonly name?: undefined; readonly unusedBecause: string };

/** The adapters that this process can open: the fastest, and the most frugal where that is another. Never rejects. */
export async function listAdapters(): Promise<AdapterReport[]> {
  let gpu: GPU;
  try {
    gpu = await webGpu(undefined);
  } catch (error) {
    return [{ unusedBecause: OctavoError.from(error).message }];
  }
  const reports = new Map<string, AdapterReport>();
  for (const powerPreference of ["high-performance", "low-power"] as const) {
    const adapter = await gpu.requestAdapter({ powerPreference }).catch(() => null);
    if (adapter === null) continue;
    const { info, features, limits } = adapter;
    const name = [info.vendor, info.architecture, info.description].filter((part) => part !== "").join(" ");
    reports.set(name, {
      name,
      features: ["shader-f16", "subgroups", "timestamp-query"].filter((feature) =>
        features.has(feature as GPUFeatureName),
      ),
      mostBindingBytes: Math.min(limits.maxStorageBufferBindingSize, limits.maxBufferSize),
      ...(isSoftware(adapter) && {
        unusedBecause: "it computes on the CPU, where Octavo's own kernels are faster",
      }),
    });
  }
  if (reports.size === 0)
    return [
      { unusedBecause: "no Vulkan, Metal or Direct3D driver offers an adapter; install the GPU's driver" },
    ];
  return [...reports.values()];
}
