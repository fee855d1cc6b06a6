import { join } from "node:path";
import { OctavoError } from "@octavo/protocol/errors";
import { readJsonFile } from "@octavo/text/files/bounded-json";
import type { StoredTensor, TensorInfo, VisionPart } from "../checkpoint/checkpoint.js";
import { tensorSlices } from "../checkpoint/tensor-slices.js";
import type { ModelConfig } from "../program/model-config.js";
import { transposedExperts } from "../program/transposed-experts.js";
import { readBudgetProcessing, readGemma4Vision } from "./gemma4-vision.js";
import { readImageProcessing, readShapedProcessing } from "./image-processing.js";
import { readQwen25Vision } from "./qwen25-vision.js";
import { qwen3Containers, readQwen3Vision } from "./qwen3-vision.js";
import { checkProcessing, readGemma3Vision } from "./vision-config.js";

const maxConfigBytes = 1 << 20;
const names =
  /^(?:model\.)?(?:vision_tower\.(?:vision_model\.)?|multi_modal_projector\.|embed_vision\.|visual\.)(.+)$/;

interface VisionSource {
  readonly folder: string;
  readonly container: string;
  /** config.json of the whole. */
  readonly json: unknown;
  readonly text: ModelConfig;
  /** Of the whole. */
  readonly stored: ReadonlyMap<string, StoredTensor>;
  readonly readTensors: (stored: ReadonlyMap<string, StoredTensor>) => ReadonlyMap<string, TensorInfo>;
}

const readers = {
  siglip: siglipPart,
  gemma4: gemma4Part,
  "qwen2.5-vl": qwen25Part,
  "qwen3-vl": qwen3Part,
};

const kinds: ReadonlyMap<string, VisionPart["kind"]> = new Map([
  ["Gemma3ForConditionalGeneration", "siglip"],
  ["Gemma4ForConditionalGeneration", "gemma4"],
  ["Qwen2_5_VLForConditionalGeneration", "qwen2.5-vl"],
  ...qwen3Containers.map((name) => [name, "qwen3-vl"] as const),
]);

/** What reads a container's images; undefined where nothing does. */
export function visionKind(container: string): VisionPart["kind"] | undefined {
  return kinds.get(container);
}

/** Whether a tensor of a container belongs to its vision tower. */
export function isTowerTensor(name: string): boolean {
  return names.test(name);
}

/** What cannot be read leaves a model of text. */
export function readVision(source: VisionSource): VisionPart | { readonly refusal: string } {
  const { container, folder } = source;
  const kind = visionKind(container);
  if (kind === undefined)
    return {
      refusal: `images of ${container} are not supported; those of ${[...kinds.keys()].join(", ")} are`,
    };
  try {
    const found = readProcessor(folder);
    if (found === undefined)
      return { refusal: `${folder} has no preprocessor_config.json, which says how images are prepared` };
    return readers[kind](source, found);
  } catch (error) {
    if (error instanceof OctavoError && error.code.startsWith("artifact_")) return { refusal: error.message };
    throw error;
  }
}

function siglipPart(source: VisionSource, { path, json }: Processor): VisionPart {
  const config = readGemma3Vision(join(source.folder, "config.json"), source.json, source.text);
  const processing = readImageProcessing(path, json);
  checkProcessing(path, config, processing);
  return { kind: "siglip", config, processing, tensors: towerTensors(source) };
}

function gemma4Part(source: VisionSource, { path, json }: Processor): VisionPart {
  const config = readGemma4Vision(join(source.folder, "config.json"), source.json, source.text);
  const processing = readBudgetProcessing(path, json, config);
  return { kind: "gemma4", config, processing, tensors: towerTensors(source) };
}

function qwen3Part(source: VisionSource, { path, json }: Processor): VisionPart {
  const config = readQwen3Vision(join(source.folder, "config.json"), source.json, source.text);
  const processing = readShapedProcessing(path, json, config);
  return { kind: "qwen3-vl", config, processing, tensors: towerTensors(source) };
}

function qwen25Part(source: VisionSource, { path, json }: Processor): VisionPart {
  const config = readQwen25Vision(join(source.folder, "config.json"), source.json, source.text);
  const processing = readShapedProcessing(path, json, config);
  return { kind: "qwen2.5-vl", config, processing, tensors: towerTensors(source) };
}

interface Processor {
  readonly path: string;
  readonly json: unknown;
}

/** transformers 5 writes all processors into one file. */
function readProcessor(folder: string): Processor | undefined {
  const path = join(folder, "preprocessor_config.json");
  const json = readJsonFile(path, maxConfigBytes);
  if (json !== undefined) return { path, json };
  const wholePath = join(folder, "processor_config.json");
  const whole = readJsonFile(wholePath, maxConfigBytes);
  const { image_processor: within } = (whole ?? {}) as { image_processor?: unknown };
  return within === undefined ? undefined : { path: wholePath, json: within };
}

/** The tower's tensors by their names within it, the patches' convolution and the projection as matrices `[out, in]`. */
function towerTensors({ stored, readTensors }: VisionSource): ReadonlyMap<string, TensorInfo> {
  const own = new Map<string, StoredTensor>();
  for (const tensor of stored.values()) {
    const name = names.exec(tensor.name)?.[1];
    if (name !== undefined && !name.startsWith("head.")) own.set(name, { ...tensor, name });
  }
  const tensors = new Map(readTensors(own));
  const patches = tensors.get("embeddings.patch_embedding.weight") ?? tensors.get("patch_embed.proj.weight");
  if (patches !== undefined && patches.shape.length > 2) {
    const [rows = 0, ...rest] = patches.shape;
    const shape = [rows, rest.reduce((product, of) => product * of, 1)];
    tensors.set(patches.name, { ...patches, shape });
  }
  for (const name of ["std_bias", "std_scale"]) {
    const row = tensors.get(name);
    if (row?.shape.length === 1) tensors.set(name, { ...row, shape: [1, ...row.shape] });
  }
  const projection = tensors.get("mm_input_projection_weight");
  if (projection?.shape.length === 2) {
    tensors.delete(projection.name);
    const [turned] = tensorSlices(
      transposedExperts({ ...projection, shape: [1, ...projection.shape] }, false),
    );
    const name = "mm_input_projection.weight";
    if (turned !== undefined) tensors.set(name, { ...turned, name });
  }
  return tensors;
}
