import type { ModelConfig, Pooling, RopeScaling } from "../program/model-config.js";
import { artifactInvalid, artifactUnsupported } from "@octavo/text/files/artifact-file";
import type { TensorInfo } from "../checkpoint/checkpoint.js";
import type { GgufBase, GgufModelFamily, ModelFamily } from "../program/model-family.js";
import { modelFamilies } from "../program/registry.js";
import type { GgufMetadata } from "./file.js";
import type { ropeFactorNames } from "./names.js";
import { GgufStrings } from "@octavo/text/files/gguf-strings";
import { GgufValues } from "./values.js";
import { checkModelConfig, usablePositions } from "../config/model-sizes.js";

interface GgufConfigInput {
  readonly path: string;
  readonly metadata: GgufMetadata;
  /** Under Hugging Face's names. */
  readonly tensors: ReadonlyMap<string, TensorInfo>;
  /** Values of the tensors that `ropeFactorNames` names, as far as the file has them. */
  readonly ropeFactors: RopeFactors;
  readonly family: GgufModelFamily;
  readonly dtype: ModelConfig["dtype"];
}

export type RopeFactors = Readonly<Partial<Record<keyof typeof ropeFactorNames, Float32Array>>>;

/** @throws OctavoError `artifact_invalid` or `artifact_unsupported` */
export function readGgufConfig(input: GgufConfigInput): ModelConfig {
  const { path, metadata, tensors, family } = input;
  const values = architectureValues(path, metadata);
  const embedding = tensors.get(
    family.encoder === undefined ? "model.embed_tokens.weight" : "embeddings.word_embeddings.weight",
  );
  if (embedding === undefined) throw artifactInvalid(path, "has no token_embd.weight");

  const hiddenSize = values.needNumber("embedding_length");
  const numLayers = values.needNumber("block_count");
  const numHeads = values.needUniform("attention.head_count");
  const headDim = values.number("attention.key_length") ?? hiddenSize / numHeads;
  const valueLength = values.number("attention.value_length") ?? headDim;
  // In latent attention a value is a part of its key.
  if (valueLength !== headDim && values.number("attention.kv_lora_rank") === undefined) {
    throw artifactUnsupported(
      path,
      `has value heads of ${valueLength} elements beside key heads of ${headDim}`,
    );
  }
  const maxPositions = values.needNumber("context_length");
  const scaling = readScaling(values, input.ropeFactors, maxPositions);
  const window = values.number("attention.sliding_window");

  const base: GgufBase = {
    architecture: family.architecture,
    vocabSize: readVocabSize(path, metadata, embedding),
    hiddenSize,
    // Mixtures of experts without a plain MLP may leave it out; for layers without one there may be a 0.
    intermediateSize:
      values.uniform("feed_forward_length") ??
      values.uniform("expert_feed_forward_length") ??
      values.needUniform("feed_forward_length"),
    numLayers,
    numHeads,
    numKvHeads: values.uniform("attention.head_count_kv") ?? numHeads,
    headDim,
    rmsNormEps: values.number("attention.layer_norm_rms_epsilon") ?? 1e-5,
    maxPositionEmbeddings: usablePositions(maxPositions, scaling),
    tieWordEmbeddings: !tensors.has("lm_head.weight"),
    attentionBias: tensors.has("model.layers.0.self_attn.q_proj.bias"),
    attentionOutputBias: tensors.has("model.layers.0.self_attn.o_proj.bias"),
    mlpBias: tensors.has("model.layers.0.mlp.gate_proj.bias"),
    hiddenActivation: "silu",
    rope: {
      theta: values.number("rope.freq_base") ?? 10_000,
      rotaryDim: values.number("rope.dimension_count") ?? headDim,
      layout: family.gguf.ropeLayout,
      scaling,
    },
    slidingWindows: Array.from({ length: Math.min(numLayers, 1_024) }, () =>
      window !== undefined && window > 0 ? window : undefined,
    ),
    dtype: input.dtype,
    ...readEmbeddings(values),
    bosTokenId: new GgufValues(path, metadata, "tokenizer.ggml").number("bos_token_id"),
    eosTokenIds: readEndIds(path, metadata),
  };
  return checkModelConfig(path, { ...base, ...family.gguf.settings?.(values, base) });
}

/** llama_pooling_type of llama.cpp, but for 0, none, and 4, rerankers. */
const poolings: readonly (Pooling | undefined)[] = [undefined, "mean", "cls", "last"];

function readEmbeddings(values: GgufValues): Pick<ModelConfig, "embedding"> {
  const type = values.number("pooling_type");
  if (type === undefined || type === 0) return {};
  const pooling = poolings[type];
  if (pooling === undefined)
    throw artifactUnsupported(values.path, `has the pooling type ${type}; mean, cls and last are supported`);
  return { embedding: { pooling, normalize: true } };
}

/** @throws OctavoError `artifact_invalid` or `artifact_unsupported` */
export function findGgufFamily(path: string, metadata: GgufMetadata): GgufModelFamily {
  const kind = new GgufValues(path, metadata, "general").string("architecture");
  if (kind === undefined) throw artifactInvalid(path, "has no general.architecture");
  const values = new GgufValues(path, metadata, kind);
  const candidates = modelFamilies
    .filter(hasGguf)
    .filter(({ gguf }) => gguf.architecture === kind || gguf.otherArchitectures?.includes(kind) === true);
  const family =
    candidates.find(({ gguf }) => gguf.recognises?.(values) === true) ??
    candidates.find(({ gguf }) => gguf.recognises === undefined);
  if (family === undefined) {
    const known = new Set(
      modelFamilies
        .filter(hasGguf)
        .flatMap(({ gguf }) => [gguf.architecture, ...(gguf.otherArchitectures ?? [])]),
    );
    throw artifactUnsupported(
      path,
      `is of the architecture ${JSON.stringify(kind.slice(0, 100))}; supported are ${[...known].join(", ")}`,
    );
  }
  if ((values.number("expert_count") ?? 0) > 0 && family.expertNames === undefined) {
    throw artifactUnsupported(
      path,
      `is a mixture of experts of the ${kind} architecture, which is not supported`,
    );
  }
  return family;
}

function hasGguf(family: ModelFamily): family is GgufModelFamily {
  return family.gguf !== undefined;
}

/** Look-ups under the architecture's own prefix. */
export function architectureValues(path: string, metadata: GgufMetadata): GgufValues {
  return new GgufValues(
    path,
    metadata,
    new GgufValues(path, metadata, "general").string("architecture") ?? "",
  );
}

/** The number of embedding rows; the token list may be shorter where a converter padded the matrix. */
function readVocabSize(path: string, metadata: GgufMetadata, embedding: TensorInfo): number {
  const rows = embedding.shape[0] ?? 0;
  const tokens = metadata.get("tokenizer.ggml.tokens");
  if (tokens instanceof GgufStrings && tokens.length > rows) {
    throw artifactInvalid(path, `has ${tokens.length} tokens but embeddings for ${rows}`);
  }
  return rows;
}

function readScaling(values: GgufValues, ropeFactors: RopeFactors, maxPositions: number): RopeScaling {
  if (ropeFactors.always !== undefined) return { kind: "factors", factors: ropeFactors.always };
  const { short, long } = ropeFactors;
  if (short !== undefined && long !== undefined) {
    return {
      kind: "longrope",
      short,
      long,
      originalMaxPositions: values.number("rope.scaling.original_context_length") ?? maxPositions,
      attentionFactor: values.number("rope.scaling.attn_factor") ?? 1,
    };
  }
  const kind = values.string("rope.scaling.type") ?? "none";
  // Files older than the rope.scaling.* keys have the linear factor alone.
  const factor = values.number("rope.scaling.factor") ?? values.number("rope.scale_linear") ?? 1;
  if (kind === "linear" || (kind === "none" && values.string("rope.scaling.type") === undefined)) {
    return factor === 1 || factor === 0 ? { kind: "none" } : { kind: "linear", factor };
  }
  if (kind === "none") return { kind };
  if (kind !== "yarn") {
    throw artifactUnsupported(
      values.path,
      `has rope scaling of type ${JSON.stringify(kind)}; supported are none, linear and yarn`,
    );
  }
  // llama.cpp multiplies YaRN's own factor by attn_factor; ModelConfig's attentionFactor is the product.
  const multiplier =
    values.number("rope.scaling.attn_factor") ?? values.number("rope.scaling.yarn_attn_factor");
  return {
    kind,
    factor,
    originalMaxPositions: values.number("rope.scaling.original_context_length") ?? maxPositions,
    betaFast: values.number("rope.scaling.yarn_beta_fast") ?? 32,
    betaSlow: values.number("rope.scaling.yarn_beta_slow") ?? 1,
    attentionFactor:
      multiplier === undefined ? undefined : multiplier * (factor > 1 ? 1 + 0.1 * Math.log(factor) : 1),
    mscale: undefined,
    mscaleAllDim: undefined,
    truncate: true,
  };
}

/**
 * Control tokens that end a turn or a text in the chat formats of the supported families. A GGUF file names one EOS;
 * the others are found by their spelling, as llama.cpp does.
 */
const endTokens: ReadonlySet<string> = new Set([
  "<|eot_id|>",
  "<|eom_id|>",
  "<|im_end|>",
  "<|end|>",
  "<|endoftext|>",
  "<|end_of_text|>",
  "<end_of_turn>",
  "<EOT>",
]);
const controlTokenType = 3;

function readEndIds(path: string, metadata: GgufMetadata): number[] {
  const tokenizer = new GgufValues(path, metadata, "tokenizer.ggml");
  const ids = ["eos_token_id", "eot_token_id", "eom_token_id"].flatMap((key) => tokenizer.number(key) ?? []);
  const tokens = metadata.get("tokenizer.ggml.tokens");
  const types = metadata.get("tokenizer.ggml.token_type");
  if (tokens instanceof GgufStrings && ArrayBuffer.isView(types) && !(types instanceof DataView)) {
    const kinds = types as Int32Array;
    for (let id = 0; id < tokens.length; id++) {
      if (kinds[id] === controlTokenType && endTokens.has(tokens.at(id) ?? "")) ids.push(id);
    }
  }
  return ids;
}
