import type { Backend } from "@octavo/kernels";
import { OctavoError } from "@octavo/protocol/errors";
import { createWebGpuBackend, type Gpu, openGpu } from "@octavo/kernels-webgpu";
import type { ResolvedLoadOptions } from "./load-options.js";

/**
 * The backend of the GPU that is asked for; undefined where any would do and there is none. Rejects with `native_unavailable` where there is
 * none such, and with `invalid_option` for options that mean nothing on a GPU.
 */
export async function openGpuBackend(options: ResolvedLoadOptions): Promise<Backend | undefined> {
  const { device, onWarning } = options;
  if (device !== "auto") return openAdapter(options, device.slice("webgpu:".length));
  try {
    return await openAdapter(options, "");
  } catch (error) {
    const { code, message } = OctavoError.from(error);
    if (code !== "native_unavailable") throw error;
    onWarning?.(`The model runs on the CPU. ${message}`);
    return undefined;
  }
}

/** Options of the CPU's kernels, with what they are where nobody asked for anything else. */
const cpuOptions = {
  numThreads: undefined,
  kernels: "auto",
  tensorParallelSize: 1,
  pipelineParallelSize: 1,
  weightsInPlace: false,
  weightCache: "off",
} as const;

async function openAdapter(options: ResolvedLoadOptions, adapter: string): Promise<Backend> {
  const isChoice = options.device === "auto";
  if (!isChoice) refuseCpuOptions(options);
  const open = (): Promise<Gpu> =>
    openGpu({
      adapter: adapter === "" ? undefined : adapter,
      hardwareOnly: isChoice,
      matrixUnits: options.gpuProducts === "f16",
    });
  const gpu = await open();
  if (isChoice) {
    try {
      refuseCpuOptions(options);
    } catch (error) {
      gpu[Symbol.dispose]();
      throw error;
    }
  }
  return createWebGpuBackend(gpu, {
    fusion: !options.enableLora,
    compilesAhead: true,
    ownsGpu: true,
    reopen: open,
  });
}

function refuseCpuOptions(options: ResolvedLoadOptions): void {
  for (const [name, usual] of Object.entries(cpuOptions)) {
    if (options[name as keyof typeof cpuOptions] === usual) continue;
    throw new OctavoError(
      "invalid_option",
      `${name} is an option of the CPU's kernels; the model is to run on a GPU.`,
      {
        param: name,
      },
    );
  }
  if (options.memoryUtilization === undefined) return;
  throw new OctavoError(
    "invalid_option",
    "WebGPU does not say how much memory a GPU has free: give the KV cache's size with --kv-cache-memory instead of a share.",
    { param: "gpu_memory_utilization" },
  );
}
