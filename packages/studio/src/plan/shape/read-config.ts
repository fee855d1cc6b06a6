import { OctavoError } from "@octavo/protocol";
import { type Family, families } from "./families.js";
import { Fields } from "./fields.js";
import type { AttentionShape, ModelShape, WeightMatrix } from "./model-shape.js";

/**
 * A config.json (its `text_config` where the model takes more than text) as a shape.
 * @param path names the file in errors
 * @throws OctavoError `artifact_invalid`, `artifact_unsupported`
 */
export function readConfigShape(path: string, json: unknown): ModelShape {
  const outer = new Fields(path, json);
  const nested = outer.object("text_config");
  return readShape(nested === undefined ? outer : new Fields(path, nested), outer.string("model_type"));
}

/** @param outerType the model_type of the config around a `text_config` that names none */
export function readShape(config: Fields, outerType: string | undefined): ModelShape {
  const name = config.string("model_type") ?? outerType;
  const family = name !== undefined && Object.hasOwn(families, name) ? families[name] : undefined;
  if (name === undefined || family === undefined) {
    throw new OctavoError(
      "artifact_unsupported",
      `${config.path}: ${name === undefined ? "names no model_type" : `is of the family ${JSON.stringify(name.slice(0, 60))}`}; ` +
        `plans are made for ${Object.keys(families).join(", ")}`,
    );
  }
  const hiddenSize = config.need("hidden_size");
  const numLayers = config.need("num_hidden_layers", 1024);
  const numHeads = config.need("num_attention_heads");
  const heads: Heads = {
    hiddenSize,
    numHeads,
    numKvHeads: config.size("num_key_value_heads") ?? family.numKvHeads ?? numHeads,
    headDim: config.size("head_dim") ?? family.headDim ?? hiddenSize / numHeads,
    latent: latentOf(config),
  };
  if (!Number.isInteger(heads.headDim)) {
    throw config.invalid(
      `has hidden_size ${hiddenSize}, which ${numHeads} heads do not divide, and no head_dim`,
    );
  }
  const vocabSize = config.need("vocab_size", 2 ** 24);
  const isTied = config.boolean("tie_word_embeddings") ?? family.isTied ?? false;
  const experts = expertsOf(config);
  const windows = windowsOf(config, family, numLayers);
  const matrices: WeightMatrix[] = [matrix("embedding", undefined, vocabSize, hiddenSize)];
  if (!isTied) matrices.push(matrix("head", undefined, vocabSize, hiddenSize));
  let vectorElements = hiddenSize;
  for (let layer = 0; layer < numLayers; layer++) {
    matrices.push(...attentionMatrices(layer, heads));
    vectorElements += family.normsPerLayer * hiddenSize + attentionVectors(config, family, heads);
    if (experts === undefined || !experts.isSparse(layer)) {
      matrices.push(...mlpMatrices(layer, hiddenSize, config.need("intermediate_size"), 1, false));
      if (config.boolean("mlp_bias") === true) {
        vectorElements += 2 * config.need("intermediate_size") + hiddenSize;
      }
      continue;
    }
    const { count, width, sharedWidth } = experts;
    matrices.push(matrix("router", layer, count, hiddenSize));
    matrices.push(...mlpMatrices(layer, hiddenSize, width, count, true));
    if (sharedWidth > 0) matrices.push(...mlpMatrices(layer, hiddenSize, sharedWidth, 1, false));
    if (experts.hasSharedGate) vectorElements += hiddenSize;
    if (experts.hasCorrection) vectorElements += count;
    if (family.hasExpertBias) vectorElements += count * (2 * width + hiddenSize + 1) + numHeads;
  }
  return {
    family: name,
    hiddenSize,
    numLayers,
    numHeads,
    numKvHeads: heads.numKvHeads,
    headDim: heads.headDim,
    vocabSize,
    maxPositions: config.size("max_position_embeddings", 2 ** 30),
    isTied,
    experts: experts && { count: experts.count, perToken: experts.perToken },
    isLatent: heads.latent !== undefined,
    matrices,
    vectorElements,
    attention: windows.map((window) => ({ ...attentionOf(heads), window })),
  };
}

interface Heads {
  readonly hiddenSize: number;
  readonly numHeads: number;
  readonly numKvHeads: number;
  readonly headDim: number;
  readonly latent: Latent | undefined;
}

/** DeepSeek's multi-head latent attention (arXiv 2405.04434): one latent and one rotated key per token for all heads. */
interface Latent {
  readonly kvRank: number;
  /** Undefined where queries are projected in one step. */
  readonly queryRank: number | undefined;
  readonly plainDim: number;
  readonly rotatedDim: number;
  readonly valueDim: number;
}

function latentOf(config: Fields): Latent | undefined {
  const kvRank = config.size("kv_lora_rank");
  if (kvRank === undefined) return undefined;
  return {
    kvRank,
    queryRank: config.size("q_lora_rank"),
    plainDim: config.need("qk_nope_head_dim"),
    rotatedDim: config.need("qk_rope_head_dim"),
    valueDim: config.need("v_head_dim"),
  };
}

function attentionMatrices(layer: number, heads: Heads): WeightMatrix[] {
  const { hiddenSize, numHeads, numKvHeads, headDim, latent } = heads;
  if (latent === undefined) {
    return [
      matrix("q", layer, numHeads * headDim, hiddenSize),
      matrix("k", layer, numKvHeads * headDim, hiddenSize),
      matrix("v", layer, numKvHeads * headDim, hiddenSize),
      matrix("o", layer, hiddenSize, numHeads * headDim),
    ];
  }
  const { kvRank, queryRank, plainDim, rotatedDim, valueDim } = latent;
  const queries = numHeads * (plainDim + rotatedDim);
  return [
    ...(queryRank === undefined
      ? [matrix("q", layer, queries, hiddenSize)]
      : [matrix("latent", layer, queryRank, hiddenSize), matrix("q", layer, queries, queryRank)]),
    matrix("latent", layer, kvRank + rotatedDim, hiddenSize),
    matrix("latent", layer, numHeads * (plainDim + valueDim), kvRank),
    matrix("o", layer, hiddenSize, numHeads * valueDim),
  ];
}

function attentionVectors(config: Fields, family: Family, heads: Heads): number {
  const { hiddenSize, numHeads, numKvHeads, headDim, latent } = heads;
  if (latent !== undefined) return latent.kvRank + (latent.queryRank ?? 0);
  const given = config.boolean("attention_bias") ?? false;
  const has = (rule: boolean | "config"): boolean => (rule === "config" ? given : rule);
  const norms = { none: 0, "per head": 2 * headDim, whole: (numHeads + numKvHeads) * headDim };
  return (
    norms[family.queryKeyNorm] +
    (has(family.qkvBias) ? (numHeads + 2 * numKvHeads) * headDim : 0) +
    (has(family.outputBias) ? hiddenSize : 0)
  );
}

/**
 * A latent cache is read once for all heads; its up-projections are folded into queries and outputs, so that each head
 * scores over rank + rotated elements and sums over rank.
 */
function attentionOf(heads: Heads): Omit<AttentionShape, "window"> {
  const { numHeads, numKvHeads, headDim, latent } = heads;
  if (latent === undefined) {
    return {
      kvElements: 2 * numKvHeads * headDim,
      kvVectors: 2 * numKvHeads,
      flopsPerContextToken: 4 * numHeads * headDim,
    };
  }
  const { kvRank, rotatedDim } = latent;
  return {
    kvElements: kvRank + rotatedDim,
    kvVectors: 1,
    flopsPerContextToken: 2 * numHeads * (2 * kvRank + rotatedDim),
  };
}

function mlpMatrices(
  layer: number,
  hiddenSize: number,
  width: number,
  copies: number,
  isRouted: boolean,
): WeightMatrix[] {
  return [
    { part: "gate", layer, rows: width, cols: hiddenSize, copies, isRouted },
    { part: "up", layer, rows: width, cols: hiddenSize, copies, isRouted },
    { part: "down", layer, rows: hiddenSize, cols: width, copies, isRouted },
  ];
}

interface Experts {
  readonly count: number;
  readonly perToken: number;
  readonly width: number;
  /** 0 without shared experts. */
  readonly sharedWidth: number;
  readonly hasSharedGate: boolean;
  /** DeepSeek V3's per-expert correction of the router's scores. */
  readonly hasCorrection: boolean;
  isSparse(layer: number): boolean;
}

function expertsOf(config: Fields): Experts | undefined {
  const count =
    config.count("num_local_experts") ?? config.count("num_experts") ?? config.count("n_routed_experts") ?? 0;
  if (count === 0) return undefined;
  const perToken = config.size("num_experts_per_tok") ?? config.need("experts_per_token");
  if (perToken > count) throw config.invalid(`sends each token to ${perToken} of ${count} experts`);
  const width = config.size("moe_intermediate_size") ?? config.need("intermediate_size");
  const gatedShared = config.count("shared_expert_intermediate_size") ?? 0;
  const firstSparse = config.count("first_k_dense_replace") ?? 0;
  const frequency = config.size("moe_layer_freq") ?? 1;
  const step = config.size("decoder_sparse_step") ?? 1;
  const dense = new Set(config.numbers("mlp_only_layers") ?? []);
  return {
    count,
    perToken,
    width,
    sharedWidth: gatedShared + (config.count("n_shared_experts") ?? 0) * width,
    hasSharedGate: gatedShared > 0,
    hasCorrection: config.string("topk_method") === "noaux_tc",
    isSparse: (layer) =>
      layer >= firstSparse && layer % frequency === 0 && !dense.has(layer) && (layer + 1) % step === 0,
  };
}

/** transformers' rules: `layer_types` decides, else the family's habit with the config's window. */
function windowsOf(config: Fields, family: Family, numLayers: number): (number | undefined)[] {
  const layers = Array.from({ length: numLayers }, (_, layer) => layer);
  const window = config.size("sliding_window", 2 ** 30);
  const types = config.strings("layer_types");
  if (types !== undefined) {
    if (types.length !== numLayers) {
      throw config.invalid(`gives ${types.length} layer types for ${numLayers} layers`);
    }
    const stranger = types.find((type) => type !== "full_attention" && type !== "sliding_attention");
    if (stranger !== undefined) {
      throw new OctavoError(
        "artifact_unsupported",
        `${config.path}: has layers of the type ${JSON.stringify(stranger.slice(0, 60))}; plans are made for full_attention and sliding_attention`,
      );
    }
    return types.map((type) =>
      type === "sliding_attention" ? (window ?? config.need("sliding_window")) : undefined,
    );
  }
  if (family.window === "none" || window === undefined) return layers.map(() => undefined);
  if (family.window === "always") return layers.map(() => window);
  if (family.window === "late layers") {
    const first =
      config.boolean("use_sliding_window") === true ? (config.count("max_window_layers") ?? 28) : Infinity;
    return layers.map((layer) => (layer >= first ? window : undefined));
  }
  const every = config.size("sliding_window_pattern") ?? family.window.fullEvery;
  return layers.map((layer) => ((layer + 1) % every === 0 ? undefined : window));
}

function matrix(
  part: WeightMatrix["part"],
  layer: number | undefined,
  rows: number,
  cols: number,
): WeightMatrix {
  return { part, layer, rows, cols, copies: 1, isRouted: false };
}
