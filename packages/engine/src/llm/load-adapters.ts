import type { Backend } from "@octavo/kernels";
import { OctavoError } from "@octavo/protocol/errors";
import { given } from "@octavo/protocol/options";
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
  if (options.tensorParallelSize > 1 || options.pipelineParallelSize > 1)
    refuse("enable_lora", "expected a tensor_parallel_size and a pipeline_parallel_size of 1");
  const names = new Set(loraModules.map(({ name }) => name));
  if (names.size < loraModules.length) refuse("lora_modules", "expected adapters of different names");
  const most = maxCpuLorasOf(options);
  if (most < loraModules.length)
    refuse("max_cpu_loras", `expected at least the ${loraModules.length} of lora_modules, got ${most}`);
}

function maxCpuLorasOf({ maxCpuLoras, loraModules }: ResolvedLoadOptions): number {
  return maxCpuLoras ?? Math.max(64, loraModules.length);
}

type AdapterPaths = Map<string, string>;

/** Folders of the adapters in `loraModules`, downloaded if need be: a missing one is an error before weights are packed. */
export async function resolveAdapters(options: ResolvedLoadOptions): Promise<AdapterPaths> {
  const paths: AdapterPaths = new Map();
  if (options.enableLora)
    for (const { path } of options.loraModules)
      paths.set(path, await resolveAdapter(path, options, options.signal));
  return paths;
}

async function resolveAdapter(
  path: string,
  { onWarning, downloadDir }: ResolvedLoadOptions,
  signal: AbortSignal | undefined,
): Promise<string> {
  const resolved = await resolveModel(path, {
    artifact: "adapter",
    ...given({ onWarning, signal }),
    ...(downloadDir !== undefined && { env: { ...process.env, HF_HUB_CACHE: downloadDir } }),
  });
  return resolved.path;
}

/** Loads the adapters in `loraModules` from `paths`; undefined if none are served. */
export async function loadAdapters(
  backend: Backend,
  checkpoint: Checkpoint,
  loaded: LoadedModel,
  paths: AdapterPaths,
  options: ResolvedLoadOptions,
): Promise<AdapterSet | undefined> {
  if (!options.enableLora) return undefined;
  const { loraModules, signal } = options;
  const { AdapterSet } = await import("../adapters/adapter-set.js");
  const { interleavedHeadDimOf } = await import("../adapters/pack-adapter.js");
  const adapters = new AdapterSet({
    target: { backend, program: loaded.program, interleavedHeadDim: interleavedHeadDimOf(checkpoint) },
    adaptable: loaded.adaptable,
    maxLoras: options.maxLoras,
    maxLoaded: maxCpuLorasOf(options),
    maxRank: options.maxLoraRank,
    resolve: async (path, loading) => paths.get(path) ?? resolveAdapter(path, options, loading),
  });
  try {
    for (const spec of loraModules) await adapters.load(spec, { isKept: true, ...given({ signal }) });
    // Adapters loaded later are looked up again.
    paths.clear();
    return adapters;
  } catch (error) {
    adapters[Symbol.dispose]();
    throw error;
  }
}
