import { OctavoError } from "@octavo/protocol/errors";
import type { ModelDescription } from "../checkpoint/describe-files.js";
import type { Environment } from "./hub-settings.js";
import { localModel } from "./local-model.js";

/** How a description is fetched where a model is not on this machine. Times in ms. */
export interface DescribeModelOptions {
  /** HF_* and proxy variables; default `process.env`. */
  readonly env?: Environment;
  readonly signal?: AbortSignal;
  readonly retryDelayMs?: number;
  readonly timeoutMs?: number;
}

/**
 * What a model's config.json or GGUF header says, without its weights: of a local folder or file, or of a hub id as
 * `resolveModel` reads it. What the cache has is taken without asking the hub; otherwise config.json alone is downloaded
 * into the cache, or of a GGUF file as many bytes as its header has, which are not kept.
 * @throws OctavoError as `resolveModel`
 */
export async function describeModel(
  idOrPath: string,
  options: DescribeModelOptions = {},
): Promise<ModelDescription> {
  const path = localModel(idOrPath);
  if (path !== undefined) {
    const { describeFiles } = await import("../checkpoint/describe-files.js");
    return describeFiles(path);
  }
  if (/\.(?:json|gguf)$/.test(idOrPath.split("/")[0] ?? "")) {
    throw new OctavoError("artifact_not_found", `${idOrPath}: no such file or folder`);
  }
  const { describeHubModel } = await import("./describe-hub-model.js");
  return await describeHubModel(idOrPath, options);
}
