import { readdirSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { OctavoError } from "@octavo/protocol/errors";
import { artifactInvalid } from "@octavo/text/files/artifact-file";
import { readJsonFile } from "@octavo/text/files/bounded-json";
import { chooseGguf, readSplits } from "../gguf/checkpoint.js";
import { type GgufMetadata, readGgufHeader } from "../gguf/file.js";
import { readSafetensorsFolder } from "../safetensors/safetensors-folder.js";

const maxConfigBytes = 4 * 1024 * 1024;

/** A tensor by its place and size alone. */
export interface TensorSize {
  /** As the file spells it. */
  readonly name: string;
  /** Outermost first. */
  readonly shape: readonly number[];
  readonly byteLength: number;
  /** As in `TensorInfo`. */
  readonly loadedBytes?: number;
}

/** What a model's files say of it without its weights, whether or not the engine can run it. */
export interface ModelDescription {
  readonly source:
    | { readonly kind: "config"; readonly path: string; readonly json: unknown }
    | { readonly kind: "gguf"; readonly path: string; readonly metadata: GgufMetadata };
  /** Undefined where the weights are not at hand. */
  readonly tensors: readonly TensorSize[] | undefined;
}

/**
 * A folder with a config.json or a GGUF model, a config.json, or a `.gguf` file.
 * @throws OctavoError `artifact_not_found`, `artifact_invalid` or `artifact_unsupported`
 */
export function describeFiles(path: string): ModelDescription {
  let isFolder: boolean;
  try {
    isFolder = statSync(path).isDirectory();
  } catch (error) {
    throw new OctavoError("artifact_not_found", `${path}: no such file or folder`, { cause: error });
  }
  if (isFolder) return describeFolder(path);
  if (path.toLowerCase().endsWith(".gguf")) return describeGguf(path);
  if (!path.toLowerCase().endsWith(".json")) {
    throw artifactInvalid(path, "is neither a folder, a config.json nor a .gguf file");
  }
  return { source: { kind: "config", path, json: readJsonFile(path, maxConfigBytes) }, tensors: undefined };
}

/** A GGUF file that may be cut off after its header. */
export function describeGgufHeader(path: string): ModelDescription {
  const { metadata, tensors } = readGgufHeader(path, { withoutData: true });
  const isSplit = ((metadata.get("split.count") as number | undefined) ?? 1) > 1;
  return { source: { kind: "gguf", path, metadata }, tensors: isSplit ? undefined : tensors };
}

function describeFolder(folder: string): ModelDescription {
  const configPath = join(folder, "config.json");
  const json = readJsonFile(configPath, maxConfigBytes);
  const files = readdirSync(folder);
  const hasWeights = files.some((file) => file.endsWith(".safetensors"));
  if (!hasWeights) {
    const gguf = chooseGguf(folder, files);
    if (gguf !== undefined) return describeGguf(join(folder, gguf));
  }
  if (json === undefined) {
    throw new OctavoError("artifact_not_found", `${folder}: holds neither a config.json nor a .gguf file`);
  }
  const tensors = hasWeights ? readSafetensorsFolder(folder) : undefined;
  return {
    source: { kind: "config", path: configPath, json },
    tensors: tensors && [...tensors.values()],
  };
}

function describeGguf(path: string): ModelDescription {
  const headers = readSplits(path);
  const [first] = headers;
  if (first === undefined) throw artifactInvalid(basename(path), "has no header");
  return {
    source: { kind: "gguf", path: first.path, metadata: first.metadata },
    tensors: headers.flatMap((header) => header.tensors),
  };
}
