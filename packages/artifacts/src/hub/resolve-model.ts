import type { DownloadProgress } from "./download-progress.js";
import type { FilePatterns } from "./file-selection.js";
import type { Environment } from "./hub-settings.js";
import { localModel } from "./local-model.js";

/** How a model is found on this machine, or downloaded into the cache that Python's tools share. */
export interface ResolveModelOptions {
  /** What is looked for; default a model. */
  readonly artifact?: "model" | "adapter";
  /** Narrows what is downloaded; the files a model needs are chosen without it. */
  readonly patterns?: FilePatterns;
  readonly onProgress?: (progress: DownloadProgress) => void;
  /** Something the user should know although the model was found, such as serving a cached copy while the hub is down. */
  readonly onWarning?: (message: string) => void;
  readonly signal?: AbortSignal;
  /** Files downloaded at a time; default 4. */
  readonly maxConcurrency?: number;
  /** HF_* and proxy variables; default `process.env`. */
  readonly env?: Environment;
  readonly retryDelayMs?: number;
  readonly timeoutMs?: number;
}

/** A model on this machine, ready for `openCheckpoint`. */
export interface ResolvedModel {
  /** A folder or a GGUF file. */
  readonly path: string;
  /** As the user named it. */
  readonly name: string;
  /** Where on the hub it came from; undefined for a local path. */
  readonly hub:
    | { readonly repository: string; readonly revision: string; readonly commit: string }
    | undefined;
}

/**
 * A local folder or GGUF file if `idOrPath` names one, the embedded model for `octavo-mini`, otherwise a model of the Hugging Face hub, downloaded into the
 * cache shared with Python's huggingface_hub. The network is touched for hub ids alone, and not with HF_HUB_OFFLINE.
 * @throws OctavoError `artifact_not_found`, `artifact_unsupported`, `hub_unreachable`, `hub_denied`, `integrity_failed`,
 * `disk_full`, `invalid_option`, `request_cancelled`
 */
export async function resolveModel(
  idOrPath: string,
  options: ResolveModelOptions = {},
): Promise<ResolvedModel> {
  const path = localModel(idOrPath);
  if (path !== undefined) return { path, name: idOrPath, hub: undefined };
  // Local models do not load the hub's modules.
  const { resolveHubModel } = await import("./resolve-hub-model.js");
  return await resolveHubModel(idOrPath, options);
}
