import { readdir, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { OctavoError } from "@octavo/protocol/errors";
import { artifactInvalid } from "@octavo/text/files/artifact-file";
import type { Checkpoint } from "./checkpoint.js";
import { chooseGguf, openGguf } from "../gguf/checkpoint.js";

/** How a checkpoint is opened. */
export interface OpenCheckpointOptions {
  /** What the checkpoint is called; default the path as given. */
  readonly name?: string;
  /** Quantisation scheme of a safetensors folder; default the one its files name. */
  readonly quantization?: string | undefined;
}

/**
 * Opens a local checkpoint: a folder in Hugging Face's layout (safetensors, whole or sharded), a folder with one GGUF
 * model, or a `.gguf` file, split or not. Headers and configs are read and checked; weights are not.
 * @throws OctavoError `artifact_not_found`, `artifact_invalid` or `artifact_unsupported`
 */
export async function openCheckpoint(path: string, options: OpenCheckpointOptions = {}): Promise<Checkpoint> {
  const name = options.name ?? path;
  const full = resolve(path);
  let isFolder: boolean;
  try {
    isFolder = (await stat(full)).isDirectory();
  } catch (error) {
    throw new OctavoError("artifact_not_found", `${path}: no such file or folder`, { cause: error });
  }
  if (!isFolder) {
    if (!full.toLowerCase().endsWith(".gguf")) {
      throw artifactInvalid(
        path,
        "is neither a folder nor a .gguf file; name the folder that holds config.json",
      );
    }
    return openGguf(full, name);
  }
  return openFolder(full, name, options.quantization);
}

async function openFolder(
  folder: string,
  name: string,
  quantization: string | undefined,
): Promise<Checkpoint> {
  const files = await readdir(folder);
  if (!files.some((file) => file.endsWith(".safetensors") || file.endsWith(".safetensors.index.json"))) {
    const gguf = chooseGguf(folder, files);
    if (gguf !== undefined) return openGguf(join(folder, gguf), name);
  }
  // Imported late: GGUF files need neither config.json's schemas nor quantization schemes.
  const { openSafetensors } = await import("../safetensors/safetensors-checkpoint.js");
  return openSafetensors(folder, files, name, quantization);
}
