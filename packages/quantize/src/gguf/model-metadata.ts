import { artifactUnsupported, type GgufValue } from "@octavo/engine/artifacts";
import type { Checkpoint, ModelConfig } from "@octavo/engine";

/** llama.cpp's names of the architectures that GGUF files are written for; its converter writes Mistral as llama. */
const architectures: Readonly<Record<string, string>> = {
  LlamaForCausalLM: "llama",
  MistralForCausalLM: "llama",
  Qwen2ForCausalLM: "qwen2",
  Qwen3ForCausalLM: "qwen3",
};

export interface GgufArchitecture {
  readonly name: string;
  /** Rows of q and k are stored so that rotary pairs are neighbours (LlamaModel.permute in convert_hf_to_gguf.py). */
  readonly interleavesRotary: boolean;
}

/** @throws OctavoError `artifact_unsupported` */
export function ggufArchitecture({ path, config }: Checkpoint): GgufArchitecture {
  const name = Object.hasOwn(architectures, config.architecture)
    ? architectures[config.architecture]
    : undefined;
  if (name === undefined) {
    const known = Object.keys(architectures).join(", ");
    throw artifactUnsupported(path, `is a ${config.architecture}; GGUF files are written for ${known}`);
  }
  return { name, interleavesRotary: name === "llama" };
}

const u32 = (value: number): GgufValue => ({ type: "u32", value });
const f32 = (value: number): GgufValue => ({ type: "f32", value });
const text = (value: string): GgufValue => ({ type: "string", value });

/** What llama.cpp's loader asks of a model of the Llama layout (convert_hf_to_gguf.py, gguf-py/gguf/constants.py). */
export function modelMetadata(checkpoint: Checkpoint, fileType: number): Record<string, GgufValue> {
  const { config, name } = checkpoint;
  const { name: kind } = ggufArchitecture(checkpoint);
  const window = config.slidingWindows.find((size) => size !== undefined);
  return {
    "general.architecture": text(kind),
    "general.type": text("model"),
    "general.name": text(name.split(/[\\/]/).findLast((part) => part !== "") ?? "model"),
    "general.file_type": u32(fileType),
    "general.quantization_version": u32(2),
    [`${kind}.block_count`]: u32(config.numLayers),
    [`${kind}.context_length`]: u32(config.maxPositionEmbeddings),
    [`${kind}.embedding_length`]: u32(config.hiddenSize),
    [`${kind}.feed_forward_length`]: u32(config.intermediateSize),
    [`${kind}.attention.head_count`]: u32(config.numHeads),
    [`${kind}.attention.head_count_kv`]: u32(config.numKvHeads),
    [`${kind}.attention.key_length`]: u32(config.headDim),
    [`${kind}.attention.value_length`]: u32(config.headDim),
    [`${kind}.attention.layer_norm_rms_epsilon`]: f32(config.rmsNormEps),
    ...(window !== undefined && { [`${kind}.attention.sliding_window`]: u32(window) }),
    [`${kind}.rope.dimension_count`]: u32(config.rope.rotaryDim),
    [`${kind}.rope.freq_base`]: f32(config.rope.theta),
    ...ropeScaling(checkpoint.path, kind, config),
    [`${kind}.vocab_size`]: u32(config.vocabSize),
  };
}

function ropeScaling(path: string, kind: string, { rope }: ModelConfig): Record<string, GgufValue> {
  const { scaling } = rope;
  const key = `${kind}.rope.scaling`;
  switch (scaling.kind) {
    case "none":
    case "llama3":
      return {};
    case "linear":
      return { [`${key}.type`]: text("linear"), [`${key}.factor`]: f32(scaling.factor) };
    case "yarn":
      return {
        [`${key}.type`]: text("yarn"),
        [`${key}.factor`]: f32(scaling.factor),
        [`${key}.original_context_length`]: u32(scaling.originalMaxPositions),
      };
    case "dynamic":
    case "factors":
      throw artifactUnsupported(
        path,
        `scales its rotary embedding by ${scaling.kind}, which GGUF files cannot say`,
      );
  }
}

/** Llama 3's scaling as divisors of the inverse frequencies, which is how GGUF files hold it (`rope_freqs.weight`). */
export function ropeFactors({ rope, headDim }: ModelConfig): Float32Array | undefined {
  const { scaling, theta } = rope;
  if (scaling.kind !== "llama3") return undefined;
  const { factor, lowFrequencyFactor: low, highFrequencyFactor: high, originalMaxPositions } = scaling;
  return Float32Array.from({ length: headDim / 2 }, (_, i) => {
    const wavelength = 2 * Math.PI * theta ** ((2 * i) / headDim);
    if (wavelength < originalMaxPositions / high) return 1;
    if (wavelength > originalMaxPositions / low) return factor;
    const smooth = (originalMaxPositions / wavelength - low) / (high - low);
    return 1 / ((1 - smooth) / factor + smooth);
  });
}
