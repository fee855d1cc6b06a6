import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { OctavoError } from "@octavo/protocol/errors";
import { isSoftwareAdapter } from "./adapter-traits.js";
import { wantedFeatures } from "./gpu.js";
import { missingLimit, webGpu } from "./open-gpu.js";

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

/**
 * The adapters that this machine offers: the fastest, and the most frugal where that is another. A process of its own asks, because Dawn
 * writes warnings of its own to standard error, and a broken driver may end the process that loads it. Never rejects.
 */
export async function listAdapters(): Promise<AdapterReport[]> {
  const script = `import { findAdapters } from ${JSON.stringify(import.meta.url)};
process.stdout.write(JSON.stringify(await findAdapters()), () => process.exit(0));`;
  try {
    const { stdout } = await promisify(execFile)(
      process.execPath,
      ["--input-type=module", "--eval", script],
      { timeout: 30_000 },
    );
    const reports: AdapterReport[] = JSON.parse(stdout);
    return reports;
  } catch {
    return [{ unusedBecause: "the GPU's driver failed while it was asked for its adapters" }];
  }
}

/** The adapters that this process can open. */
export async function findAdapters(): Promise<AdapterReport[]> {
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
      features: wantedFeatures.filter((feature) => features.has(feature)),
      mostBindingBytes: Math.min(limits.maxStorageBufferBindingSize, limits.maxBufferSize),
      ...unused(adapter),
    });
  }
  if (reports.size === 0)
    return [
      { unusedBecause: "no Vulkan, Metal or Direct3D driver offers an adapter; install the GPU's driver" },
    ];
  return [...reports.values()];
}

function unused(adapter: GPUAdapter): { readonly unusedBecause?: string } {
  const missing = missingLimit(adapter);
  if (missing !== undefined) return { unusedBecause: `it has ${missing}` };
  return isSoftwareAdapter(adapter.info)
    ? { unusedBecause: "it computes on the CPU, where Octavo's own kernels are faster" }
    : {};
}
