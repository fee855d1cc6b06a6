import { readdir, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { OctavoError } from "@octavo/protocol";
import { type QuantizationConfig, readTensors } from "../quantization/schemes.js";
import { artifactInvalid } from "./artifact-file.js";
import { readJsonFile } from "./bounded-json.js";
import type { Checkpoint, TokenizerSource } from "./checkpoint.js";
import { knownArchitectures, readConfigJson } from "./config-json.js";
import { readGenerationConfig } from "./generation-config.js";
import { openGguf, parseSplitName } from "./gguf-checkpoint.js";
import { readSafetensorsFolder } from "./safetensors-folder.js";
import { storageOf } from "./tensor-storage.js";
import { readTokenizerFolder } from "./tokenizer-files.js";

export interface OpenCheckpointOptions {
  /** Registry keys of the models that can be built; default every architecture whose config can be read. */
  readonly architectures?: readonly string[];
  /** What the checkpoint is called; default the path as given. */
  readonly name?: string;
  /** Quantisation scheme of a safetensors folder; default the one its files name. */
  readonly quantization?: string | undefined;
}

const maxConfigBytes = 4 * 1024 * 1024;

/**
 * Opens a local checkpoint: a folder in Hugging Face's layout (safetensors, whole or sharded), a folder with one GGUF
 * model, or a `.gguf` file, split or not. Headers and configs are read and checked; weights are not.
 * @throws OctavoError `artifact_not_found`, `artifact_invalid` or `artifact_unsupported`
 */
export async function openCheckpoint(path: string, options: OpenCheckpointOptions = {}): Promise<Checkpoint> {
  const supported = options.architectures ?? knownArchitectures;
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
    return openGguf(full, name, supported);
  }
  return openFolder(full, name, supported, options.quantization);
}

async function openFolder(
  folder: string,
  name: string,
  supported: readonly string[],
  quantization: string | undefined,
): Promise<Checkpoint> {
  const files = await readdir(folder);
  if (!files.some((file) => file.endsWith(".safetensors") || file.endsWith(".safetensors.index.json"))) {
    const gguf = chooseGguf(folder, files);
    if (gguf !== undefined) return openGguf(join(folder, gguf), name, supported);
  }
  const configPath = join(folder, "config.json");
  const json = readJsonFile(configPath, maxConfigBytes);
  if (json === undefined) {
    throw new OctavoError("artifact_not_found", `${folder}: holds neither a config.json nor a .gguf file`);
  }
  // The config is judged before the weights, so that an unsupported model is named as such.
  readConfigJson(configPath, json, supported, "bf16");
  const stored = readSafetensorsFolder(folder);
  if (stored === undefined) throw noWeights(folder, files);
  const tensors = readTensors(stored, folder, readQuantizationConfig(folder, configPath, json), quantization);
  const config = readConfigJson(configPath, json, supported, storageOf(tensors.values()));
  const generation = readGenerationConfig(join(folder, "generation_config.json"));
  const tokenizer = readTokenizerFolder(folder);
  const ends = [...config.eosTokenIds, ...generation.eosTokenIds, ...tokenizerEndId(tokenizer)];
  const eosTokenIds = [...new Set(ends)].filter((id) => id >= 0 && id < config.vocabSize);
  return {
    format: "safetensors",
    name,
    path: folder,
    config: { ...config, eosTokenIds },
    generation: generation.defaults,
    tensors,
    tokenizer,
  };
}

/**
 * What says how the weights are quantised: config.json's `quantization_config` (compressed-tensors called it
 * `compression_config` at first), or the files that AutoGPTQ and AutoAWQ wrote beside it before.
 */
function readQuantizationConfig(
  folder: string,
  configPath: string,
  json: unknown,
): QuantizationConfig | undefined {
  const config = (json ?? {}) as { quantization_config?: unknown; compression_config?: unknown };
  const within = config.quantization_config ?? config.compression_config ?? undefined;
  if (within !== undefined) return { path: configPath, fields: within };
  for (const [file, method] of [
    ["quantize_config.json", "gptq"],
    ["quant_config.json", "awq"],
  ] as const) {
    const path = join(folder, file);
    const fields = readJsonFile(path, maxConfigBytes);
    if (typeof fields === "object" && fields !== null)
      return { path, fields: { quant_method: method, ...fields } };
  }
  return undefined;
}

/** Projectors of multimodal models lie beside the model they belong to. */
export function chooseGguf(folder: string, files: readonly string[]): string | undefined {
  const models = files.filter((file) => /\.gguf$/i.test(file) && !/^mmproj/i.test(file));
  const heads = models.filter((file) => (parseSplitName(file)?.index ?? 1) === 1);
  if (heads.length > 1) {
    throw artifactInvalid(
      folder,
      `holds ${heads.length} GGUF models; name one of ${heads.toSorted().slice(0, 20).join(", ")}`,
    );
  }
  return heads[0] ?? models[0];
}

function noWeights(folder: string, files: readonly string[]): OctavoError {
  const pickled = files.find((file) => /^pytorch_model.*\.bin$|\.pth$|\.pt$/.test(file));
  if (pickled === undefined) {
    return new OctavoError("artifact_not_found", `${folder}: holds no .safetensors and no .gguf file`);
  }
  return new OctavoError(
    "artifact_unsupported",
    `${folder}: holds only pickled weights (${pickled}), which can run code when read; convert them to safetensors`,
  );
}

/** Chat variants often change only the tokenizer's EOS; generation must stop at it although config.json was left as it was. */
function tokenizerEndId(tokenizer: TokenizerSource): number[] {
  const { eosToken } = tokenizer.config;
  if (tokenizer.kind !== "tokenizer.json" || eosToken === undefined) return [];
  const added = (tokenizer.json as { added_tokens?: unknown }).added_tokens;
  if (!Array.isArray(added)) return [];
  for (const token of added as unknown[]) {
    const { id, content } = (token ?? {}) as { id?: unknown; content?: unknown };
    if (content === eosToken && typeof id === "number" && Number.isSafeInteger(id)) return [id];
  }
  return [];
}
