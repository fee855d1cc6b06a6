import type { Backend } from "@octavo/kernels";
import type { AdapterSet } from "../adapters/adapter-set.js";
import { resolveModel } from "@octavo/artifacts/hub/resolve-model";
import type { LoadedModel } from "../model/load-model.js";
import type { Checkpoint } from "@octavo/artifacts/checkpoint/checkpoint";
import type { LoadOptions } from "./load-options.js";
import { checkSize, invalidOption } from "./option-checks.js";

const DEFAULT_MAX_LORAS = 8;
const DEFAULT_MAX_CPU_LORAS = 64;
const DEFAULT_MAX_LORA_RANK = 64;
const MOST_LORA_RANK = 4096;

/** Adapters in one step; undefined where none are served. */
export function maxLorasOf({ enableLora, maxLoras }: LoadOptions): number | undefined {
  return enableLora === true ? (maxLoras ?? DEFAULT_MAX_LORAS) : undefined;
}

/** Throws `invalid_option`, before anything is loaded. */
export function checkLoraOptions(options: LoadOptions): void {
  const { enableLora = false, loraModules = [], maxLoras, maxCpuLoras, maxLoraRank } = options;
  if (!enableLora) {
    if (loraModules.length > 0) throw invalidOption("lora_modules", "empty unless enable_lora is set");
    return;
  }
  const names = new Set(loraModules.map(({ name }) => name));
  if (names.size < loraModules.length) throw invalidOption("lora_modules", "adapters of different names");
  checkSize("max_loras", maxLoras ?? DEFAULT_MAX_LORAS);
  if (checkSize("max_lora_rank", maxLoraRank ?? DEFAULT_MAX_LORA_RANK) > MOST_LORA_RANK)
    throw invalidOption("max_lora_rank", `at most ${MOST_LORA_RANK}, not ${maxLoraRank}`);
  const most = checkSize("max_cpu_loras", maxCpuLoras ?? Math.max(DEFAULT_MAX_CPU_LORAS, loraModules.length));
  if (most < loraModules.length)
    throw invalidOption(
      "max_cpu_loras",
      `at least the ${loraModules.length} adapters of lora_modules, not ${most}`,
    );
}

/** The adapters to start with; undefined where none are served. */
export async function loadAdapters(
  backend: Backend,
  checkpoint: Checkpoint,
  loaded: LoadedModel,
  options: LoadOptions,
): Promise<AdapterSet | undefined> {
  if (options.enableLora !== true) return undefined;
  const { loraModules = [], onWarning, signal, downloadDir } = options;
  const { AdapterSet } = await import("../adapters/adapter-set.js");
  const { interleavedHeadDimOf } = await import("../adapters/pack-adapter.js");
  const adapters = new AdapterSet({
    target: { backend, program: loaded.program, interleavedHeadDim: interleavedHeadDimOf(checkpoint) },
    adaptable: loaded.adaptable,
    maxLoras: options.maxLoras ?? DEFAULT_MAX_LORAS,
    maxLoaded: options.maxCpuLoras ?? Math.max(DEFAULT_MAX_CPU_LORAS, loraModules.length),
    maxRank: options.maxLoraRank ?? DEFAULT_MAX_LORA_RANK,
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
