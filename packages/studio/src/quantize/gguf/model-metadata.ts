import { type GgufValue } from "@octavo/artifacts/gguf/write-gguf-header";
import { type LayerNames } from "@octavo/artifacts/gguf/gguf-names";
import { readGgufToBe } from "@octavo/artifacts/gguf/gguf-reading";
import { type RopeFactors } from "@octavo/artifacts/gguf/gguf-config";
import { type Checkpoint, type ModelConfig, supportedArchitectures } from "@octavo/engine";
import { refuseWhatIsLost } from "./read-back.js";
import { ropeMetadata } from "./rope-metadata.js";
import { writtenArchitecture } from "./written-architectures.js";

/** A GGUF file as far as it follows from the configuration. */
export interface GgufModel {
  readonly metadata: Readonly<Record<string, GgufValue>>;
  readonly layerNames: LayerNames;
  /** Rows of q and k are stored so that rotary pairs are neighbours (LlamaModel.permute). */
  readonly interleavesRotary: boolean;
  /** Added to the weights of norms. */
  readonly normOffset: number;
  /** Of the inverse rotary frequencies, in tensors of their own. */
  readonly ropeFactors: RopeFactors;
}

const u32 = (value: number): GgufValue => ({ type: "u32", value });
const f32 = (value: number): GgufValue => ({ type: "f32", value });
const text = (value: string): GgufValue => ({ type: "string", value });

/**
 * What llama.cpp's loader asks of a model (conversion/*.py, gguf-py/gguf/constants.py). It is read again as the engine reads such
 * files: a setting that the architecture has no key for, and takes another value of, is refused instead of lost.
 * @throws OctavoError `artifact_unsupported`
 */
export function describeGguf(
  checkpoint: Checkpoint,
  fileType: number,
  tokenizer: Readonly<Record<string, GgufValue>>,
): GgufModel {
  const { config, name, path } = checkpoint;
  const architecture = writtenArchitecture(checkpoint);
  const { kind } = architecture;
  const rope = ropeMetadata(checkpoint, architecture);
  const metadata: Record<string, GgufValue> = {
    "general.architecture": text(kind),
    "general.type": text("model"),
    "general.name": text(name.split(/[\\/]/).findLast((part) => part !== "") ?? "model"),
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
    ...familyMetadata(kind, config),
    ...rope.metadata,
    [`${kind}.vocab_size`]: u32(config.vocabSize),
    ...tokenizer,
  };
  const tensors = new Map(checkpoint.tensors);
  if (config.tieWordEmbeddings) tensors.delete("lm_head.weight");
  const { factors: ropeFactors } = rope;
  const read = readGgufToBe({ path, metadata, tensors, ropeFactors }, supportedArchitectures);
  refuseWhatIsLost(path, kind, config, read.config);
  const { layerNames, ropeLayout } = read.architecture;
  const { normOffset } = architecture;
  return { metadata, layerNames, interleavesRotary: ropeLayout === "interleaved", normOffset, ropeFactors };
}

/** Linear scaling stretches the length that the file names. */
function storedPositions({ maxPositionEmbeddings, rope: { scaling } }: ModelConfig): number {
  return scaling.kind === "linear" && scaling.factor > 1
    ? Math.round(maxPositionEmbeddings / scaling.factor)
    : maxPositionEmbeddings;
}

/** Settings that only some architectures have. */
function familyMetadata(kind: string, config: ModelConfig): Record<string, GgufValue> {
  const { experts, logitScale, embeddingScale, residualScale, attentionScale } = config;
  const metadata: Record<string, GgufValue> = {};
  const add = (key: string, value: GgufValue): void => {
    metadata[`${kind}.${key}`] = value;
  };
  const window = config.slidingWindows.find((size) => size !== undefined);
  if (window !== undefined) add("attention.sliding_window", u32(window));
  // By the 0, llama.cpp tells Phi-4 from older models of the architecture.
  else if (kind === "phi3") add("attention.sliding_window", u32(0));
  if (kind.startsWith("gemma")) {
    if (config.attentionSoftCap !== undefined) add("attn_logit_softcapping", f32(config.attentionSoftCap));
    if (config.logitSoftCap !== undefined) add("final_logit_softcapping", f32(config.logitSoftCap));
  }
  if (kind.startsWith("granite")) {
    add("attention.scale", f32(attentionScale ?? config.headDim ** -0.5));
    add("embedding_scale", f32(embeddingScale ?? 1));
    add("residual_scale", f32(residualScale ?? 1));
    add("logit_scale", f32(1 / (logitScale ?? 1)));
  }
  if (experts !== undefined) {
    add("expert_count", u32(experts.count));
    add("expert_used_count", u32(experts.perToken));
    if (kind.startsWith("qwen")) add("expert_feed_forward_length", u32(experts.intermediateSize));
    if (experts.sharedIntermediateSize !== undefined) {
      add("expert_shared_feed_forward_length", u32(experts.sharedIntermediateSize));
    }
  }
  return metadata;
}
