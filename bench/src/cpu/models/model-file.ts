import { closeSync, existsSync, mkdirSync, openSync, readSync, renameSync, rmSync, writeSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { encodeTestHeader } from "@octavo/artifacts/testing/write-gguf";
import { type GgufValue } from "@octavo/artifacts/gguf/write-header";
import { writeConfig } from "./config-folder.js";
import { randomTensor } from "./random-blocks.js";
import { type FileType, fileTypeId } from "./quantisation-mix.js";
import { type BenchShape, modelShapes, type ShapeName } from "./shapes.js";
import { multiplyAddsPerToken, type TensorSpec, modelTensors, matrixBytes } from "./tensors.js";
import { vocabularyMetadata } from "./vocabulary.js";

/** Counted up when the content of the files changes, so that none of an older make is taken for a new one. */
const CONTENT_VERSION = 1;
const ALIGNMENT = 32;

export interface ModelFile {
  readonly path: string;
  readonly shape: BenchShape;
  readonly type: FileType;
  readonly weightBytes: number;
  readonly multiplyAddsPerToken: number;
}

/** OCTAVO_BENCH_MODELS, or `octavo/bench-models` in the user's cache folder. */
export function defaultModelFolder(env: NodeJS.ProcessEnv = process.env): string {
  if (env["OCTAVO_BENCH_MODELS"]) return env["OCTAVO_BENCH_MODELS"];
  return join(env["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "octavo", "bench-models");
}

/** The file of a shape and type, or of its first layers, written when it is not in the folder yet. */
export function modelFile(
  folder: string,
  shapeName: ShapeName,
  type: FileType,
  onWrite: (path: string, bytes: number) => void = () => {},
  mostLayers = Infinity,
): ModelFile {
  const whole: BenchShape = modelShapes[shapeName];
  const isCut = mostLayers < whole.numLayers;
  const shape = isCut ? { ...whole, numLayers: mostLayers } : whole;
  const tensors = modelTensors(shape, type);
  const layers = isCut ? `-${mostLayers}-layers` : "";
  const path = join(folder, `${shapeName}${layers}-${type}-v${CONTENT_VERSION}.gguf`);
  if (!existsSync(path)) {
    onWrite(path, matrixBytes(tensors));
    mkdirSync(folder, { recursive: true });
    writeModel(path, shape, type, tensors);
  }
  writeConfig(path, shape);
  return {
    path,
    shape,
    type,
    weightBytes: matrixBytes(tensors),
    multiplyAddsPerToken: multiplyAddsPerToken(tensors),
  };
}

/** Reads a file through, so that no contender pays for the disk. */
export function warmFileCache(path: string): void {
  const buffer = new Uint8Array(8 << 20);
  const file = openSync(path, "r");
  try {
    while (readSync(file, buffer) > 0);
  } finally {
    closeSync(file);
  }
}

/** Streams the tensors, random ones unless `bytesOf` says others, to a file beside, which takes the name when it is whole. */
export function writeModel(
  path: string,
  shape: BenchShape,
  type: FileType,
  tensors: readonly TensorSpec[],
  bytesOf: (tensor: TensorSpec) => Iterable<Uint8Array> = randomTensor,
): void {
  const fresh = `${path}.${process.pid}.new`;
  const file = openSync(fresh, "w");
  try {
    writeSync(file, encodeTestHeader({ metadata: metadataOf(shape, type), tensors, alignment: ALIGNMENT }));
    for (const tensor of tensors) {
      for (const chunk of bytesOf(tensor)) writeSync(file, chunk);
      const padding = -tensor.byteLength & (ALIGNMENT - 1);
      if (padding > 0) writeSync(file, new Uint8Array(padding));
    }
    closeSync(file);
    renameSync(fresh, path);
  } finally {
    rmSync(fresh, { force: true });
  }
}

function metadataOf(shape: BenchShape, type: FileType): Record<string, GgufValue> {
  const kind = shape.architecture;
  const u32 = (value: number): GgufValue => ({ type: "u32", value });
  return {
    "general.architecture": { type: "string", value: kind },
    "general.name": { type: "string", value: `random ${shape.name} ${type}` },
    "general.file_type": u32(fileTypeId(type)),
    "general.quantization_version": u32(2),
    [`${kind}.block_count`]: u32(shape.numLayers),
    [`${kind}.context_length`]: u32(shape.contextLength),
    [`${kind}.embedding_length`]: u32(shape.hiddenSize),
    [`${kind}.feed_forward_length`]: u32(shape.intermediateSize),
    [`${kind}.attention.head_count`]: u32(shape.numHeads),
    [`${kind}.attention.head_count_kv`]: u32(shape.numKvHeads),
    [`${kind}.attention.key_length`]: u32(shape.headDim),
    [`${kind}.attention.value_length`]: u32(shape.headDim),
    [`${kind}.attention.layer_norm_rms_epsilon`]: { type: "f32", value: shape.rmsNormEps },
    [`${kind}.rope.freq_base`]: { type: "f32", value: shape.ropeTheta },
    [`${kind}.rope.dimension_count`]: u32(shape.rotaryDim ?? shape.headDim),
    ...(shape.slidingWindow !== undefined && {
      [`${kind}.attention.sliding_window`]: u32(shape.slidingWindow),
    }),
    ...recurrenceMetadata(shape),
    [`${kind}.vocab_size`]: u32(shape.vocabSize),
    ...vocabularyMetadata(shape),
  };
}

function recurrenceMetadata({
  architecture: kind,
  recurrence,
  rotaryDim = 0,
}: BenchShape): Record<string, GgufValue> {
  if (recurrence === undefined) return {};
  const { attentionEvery, numKeyHeads, numHeads, keyDim, valueDim, taps } = recurrence;
  const u32 = (value: number): GgufValue => ({ type: "u32", value });
  return {
    [`${kind}.full_attention_interval`]: u32(attentionEvery),
    [`${kind}.ssm.conv_kernel`]: u32(taps),
    [`${kind}.ssm.state_size`]: u32(keyDim),
    [`${kind}.ssm.group_count`]: u32(numKeyHeads),
    [`${kind}.ssm.time_step_rank`]: u32(numHeads),
    [`${kind}.ssm.inner_size`]: u32(numHeads * valueDim),
    // M-RoPE's parts; of text they rotate alike.
    [`${kind}.rope.dimension_sections`]: {
      type: "array",
      of: "i32",
      value: [Math.ceil(rotaryDim / 6), Math.floor(rotaryDim / 6), Math.floor(rotaryDim / 6), 0],
    },
  };
}
