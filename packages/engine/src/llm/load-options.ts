import type { Backend } from "@octavo/kernels";
import type { DownloadProgress } from "@octavo/artifacts/hub/download-progress";
import {
  checkOptionNames,
  type OptionsOf,
  type ResolvedOptions,
  resolveOptions,
} from "@octavo/protocol/options";
import type { EngineHooks } from "../engine-options.js";
import { loadingOptions } from "../options/loading-options.js";
import { paramOf, schedulingOptions } from "../options/scheduling-options.js";

/** What `LLM.load` takes beside settings. */
interface LoadCallbacks {
  readonly onProgress?: ((progress: LoadProgress) => void) | undefined;
  /** Called with what the user should know although the model can be served. */
  readonly onWarning?: ((message: string) => void) | undefined;
  /** Ends the loading with `request_cancelled`; what was loaded is freed. */
  readonly signal?: AbortSignal | undefined;
  /** Runs the model on this backend instead of a native one of its own; the caller disposes it, after the model. */
  readonly backend?: Backend | undefined;
  readonly hooks?: EngineHooks | undefined;
  /** Only for checkpoints that declare FP8 activations: computed exactly (the default), or rounded as declared. */
  readonly activations?: "exact" | "declared" | undefined;
}

const callbacks: Readonly<Record<keyof LoadCallbacks, true>> = {
  onProgress: true,
  onWarning: true,
  signal: true,
  backend: true,
  hooks: true,
  activations: true,
};

/** How a model is loaded and served. Names follow vLLM's flags; docs/reference/options.md lists defaults and ranges. */
export interface LoadOptions
  extends OptionsOf<typeof loadingOptions>, OptionsOf<typeof schedulingOptions>, LoadCallbacks {}

export type ResolvedLoadOptions = ResolvedOptions<typeof loadingOptions> &
  ResolvedOptions<typeof schedulingOptions> &
  LoadCallbacks;

/** How far a load is. `doneBytes` of `totalBytes` of this phase, or of `unit` where that is set. */
export interface LoadProgress {
  /** "downloading", "loading weights" or, on GPUs, "compiling shaders" */
  readonly phase: string;
  /** What is counted; default bytes. */
  readonly unit?: "shaders";
  readonly doneBytes: number;
  readonly totalBytes: number;
  /** While downloading: files, speed and what was in the cache; for `createProgressBar`. */
  readonly download?: DownloadProgress;
}

/** Fills in defaults. Throws `invalid_option` for an unknown option or a value out of range. */
export function resolveLoadOptions(options: LoadOptions): ResolvedLoadOptions {
  const rows = { ...loadingOptions, ...schedulingOptions };
  checkOptionNames(options, [...Object.keys(rows), ...Object.keys(callbacks)], "LLM.load");
  const { onProgress, onWarning, signal, backend, hooks, activations } = options;
  return {
    ...resolveOptions(rows, options, paramOf),
    onProgress,
    onWarning,
    signal,
    backend,
    hooks,
    activations,
  };
}
