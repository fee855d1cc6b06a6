import type { Backend } from "@octavo/kernels";
import { OctavoError } from "@octavo/protocol/errors";
import type { AdapterSet } from "../adapters/adapter-set.js";
import { resolveModel } from "@octavo/artifacts/hub/resolve-model";
import type { LoadedModel } from "../model/load-model.js";
import type { Checkpoint } from "@octavo/artifacts/checkpoint/checkpoint";
import type { ResolvedLoadOptions } from "./load-options.js";

/** Throws `invalid_option`, before anything is loaded. */
export function checkLoraOptions(options: ResolvedLoadOptions): void {
  const { enableLora, loraModules } = options;
  const refuse = (param: string, message: string): never => {
    throw new OctavoError("invalid_option", `${param}: ${message}`, { param });
  };
  if (!enableLora) {
    if (loraModules.length > 0) refuse("lora_modules", "expected none unless enable_lora is set");
    return;
  }
  const names = new Set(loraModules.map(({ name }) => name));
  if (names.size < loraModules.length) refuse("lora_modules", "expected adapters of different names");
  const most = maxCpuLorasOf(options);
  if (most < loraModules.length)
    refuse("max_cpu_loras", `expected at least the ${loraModules.length} of lora_modules, got ${most}`);
}

function maxCpuLorasOf({ maxCpuLoras, loraModules }: ResolvedLoadOptions): number {
  return maxCpuLoras ?? Math.max(64, loraModules.length);
}

/** The adapters to start with; undefined where none are served. */
export async function loadAdapters(
  backend: Backend,
  checkpoint: Checkpoint,
  loaded: LoadedModel,
  options: ResolvedLoadOptions,
): Promise<AdapterSet | undefined> {
  if (!options.enableLora) return undefined;
  const { loraModules, onWarning, signal, downloadDir } = options;
  const { AdapterSet } = await import("../adapters/adapter-set.js");
  const { interleavedHeadDimOf } = await import("../adapters/pack-adapter.js");
  const adapters = new AdapterSet({
    target: { backend, program: loaded.program, interleavedHeadDim: interleavedHeadDimOf(checkpoint) },
    adaptable: loaded.adaptable,
    maxLoras: options.maxLoras,
    maxLoaded: maxCpuLorasOf(options),
    maxRank: options.maxLoraRank,
    resolve: async (path, loading) => {
      const resolved = await resolveModel(path, {
        artifact: "adapter",
        ...(onWarning !== undefined && { onWarning }),
        ...(loading !== undefined && { signal: loading }),
        ...(downloadDir !== undefined && { env: { ...process.env, HF_HUB_CACHE: downloadDir } }),
      });
      return resolved.path;
    },
  });
  try {
    for (const spec of loraModules) await adapters.load(spec, signal === undefined ? {} : { signal });
    return adapters;
  } catch (error) {
    adapters[Symbol.dispose]();
    throw error;
  }
}
