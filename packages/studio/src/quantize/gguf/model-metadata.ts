import { f32, type GgufValue, ggufText, u32 } from "@octavo/artifacts/gguf/write-header";
import { type LayerNames } from "@octavo/artifacts/gguf/names";
import { readGgufToBe } from "@octavo/artifacts/gguf/read-planned-file";
import { type RopeFactors } from "@octavo/artifacts/gguf/config";
import type { GgufFamily } from "@octavo/artifacts/program/model-family";
import { modelFamilies, modelFamily } from "@octavo/artifacts/program/registry";
import type { Checkpoint, ModelConfig } from "@octavo/engine";
import { artifactUnsupported } from "@octavo/text/files/artifact-file";
import { refuseWhatIsLost } from "./read-back.js";
import { ropeMetadata } from "./rope-metadata.js";

/** A GGUF file as far as it follows from the configuration. */
export interface GgufModel {
  readonly metadata: Readonly<Record<string, GgufValue>>;
  readonly layerNames: LayerNames;
  /** Rows of q and k are stored so that rotary pairs are neighbours (LlamaModel.permute). */
  readonly interleavesRotary: boolean;
  /** Factors of the inverse rotary frequencies, which are tensors of their own. */
  readonly ropeFactors: RopeFactors;
}

/**
 * The metadata that llama.cpp's loader needs (conversion/*.py, gguf-py/gguf/constants.py). It is read back as the engine reads such
 * files: a setting that GGUF has no key for, and whose assumed value differs, is refused instead of lost.
 * @throws OctavoError `artifact_unsupported`
 */
export function describeGguf(
  checkpoint: Checkpoint,
  fileType: number,
  tokenizer: Readonly<Record<string, GgufValue>>,
): GgufModel {
  const { config, name, path } = checkpoint;
  const family = writtenForm(checkpoint);
  const { architecture: kind, writing } = family;
  const rope = ropeMetadata(checkpoint, family);
  const ofArchitecture = {
    ...windowMetadata(config),
    ...expertMetadata(config),
    ...writing?.metadata?.(config),
  };
  const metadata: Record<string, GgufValue> = {
    "general.architecture": ggufText(kind),
    "general.type": ggufText("model"),
    "general.name": ggufText(name.split(/[\\/]/).findLast((part) => part !== "") ?? "model"),
    "general.file_type": u32(fileType),
    "general.quantization_version": u32(2),
    [`${kind}.block_count`]: u32(config.numLayers),
    [`${kind}.context_length`]: u32(storedPositions(config)),
    [`${kind}.embedding_length`]: u32(config.hiddenSize),
    [`${kind}.feed_forward_length`]: u32(config.intermediateSize),
    [`${kind}.attention.head_count`]: u32(config.numHeads),
    [`${kind}.attention.head_count_kv`]: u32(config.numKvHeads),
    [`${kind}.attention.key_length`]: u32(config.headDim),
    [`${kind}.attention.value_length`]: u32(config.headDim),
    [`${kind}.attention.layer_norm_rms_epsilon`]: f32(config.rmsNormEps),
    ...Object.fromEntries(Object.entries(ofArchitecture).map(([key, value]) => [`${kind}.${key}`, value])),
    ...rope.metadata,
    [`${kind}.vocab_size`]: u32(config.vocabSize),
    ...tokenizer,
  };
  const tensors = new Map(checkpoint.tensors);
  if (config.tieWordEmbeddings) tensors.delete("lm_head.weight");
  const { factors: ropeFactors } = rope;
  const read = readGgufToBe({ path, metadata, tensors, ropeFactors });
  refuseWhatIsLost(path, kind, config, read.config);
  const { layerNames, ropeLayout, isInterleavedAsTrained = false } = family;
  const interleavesRotary = ropeLayout === "interleaved" && !isInterleavedAsTrained;
  return { metadata, layerNames, interleavesRotary, ropeFactors };
}

/** `context_length` as stored: readers multiply it by a linear scaling factor. */
function storedPositions({ maxPositionEmbeddings, rope: { scaling } }: ModelConfig): number {
  return scaling.kind === "linear" && scaling.factor > 1
    ? Math.round(maxPositionEmbeddings / scaling.factor)
    : maxPositionEmbeddings;
}

function windowMetadata({ slidingWindows }: ModelConfig): Record<string, GgufValue> {
  const window = slidingWindows.find((size) => size !== undefined);
  return window === undefined ? {} : { "attention.sliding_window": u32(window) };
}

function expertMetadata({ experts }: ModelConfig): Record<string, GgufValue> {
  if (experts === undefined) return {};
  const { count, perToken, sharedIntermediateSize: shared } = experts;
  return {
    expert_count: u32(count),
    expert_used_count: u32(perToken),
    ...(shared !== undefined && { expert_shared_feed_forward_length: u32(shared) }),
  };
}

/**
 * The family's GGUF description, if llama.cpp can load this model.
 * @throws OctavoError `artifact_unsupported` for models that llama.cpp has no such architecture for
 */
export function writtenForm({ path, config, tensors }: Checkpoint): GgufFamily {
  const { gguf } = modelFamily(config.architecture);
  const writing = gguf?.writing;
  if (gguf === undefined || writing === undefined) {
    const known = modelFamilies.flatMap((family) => (family.gguf?.writing ? [family.architecture] : []));
    throw artifactUnsupported(
      path,
      `is a ${config.architecture}; GGUF files are written for ${known.join(", ")}`,
    );
  }
  const refuse = (problem: string): never => {
    throw artifactUnsupported(path, `${problem}, which llama.cpp's ${gguf.architecture} models cannot have`);
  };
  if (writing.head === "own" && config.tieWordEmbeddings) refuse("has the embedding for an output head");
  if (writing.head === "embedding" && !config.tieWordEmbeddings) refuse("has an output head of its own");
  if (writing.hasWholeHeads === true && config.numHeads * config.headDim !== config.hiddenSize) {
    refuse(`has ${config.numHeads} heads of ${config.headDim} beside a hidden size of ${config.hiddenSize}`);
  }
  const bias = [...tensors.keys()].find((name) => /\.(?:o_proj|mlp\..+)\.bias$/.test(name));
  if (writing.takesOutputBiases !== true && bias !== undefined)
    refuse(`has the bias ${JSON.stringify(bias)}`);
  return gguf;
}
