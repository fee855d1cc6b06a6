import type { TensorSize } from "@octavo/engine";
import { GgufStrings } from "@octavo/text/files/gguf-strings";
import { ConfigFields } from "./config-fields.js";
import {
  embeddingKind,
  headKind,
  type LayerAttention,
  type ModelShape,
  routerKind,
  type WeightMatrix,
} from "./model-shape.js";

/** model_types of DeepSeek V2 and V3 and their like, which are planned but not served. */
export const latentFamilies: readonly string[] = ["deepseek_v2", "deepseek_v3", "kimi_k2"];
export const latentGgufArchitecture = "deepseek2";

/** DeepSeek's multi-head latent attention (arXiv 2405.04434): one latent and one rotated key per token for all heads. */
interface LatentSizes {
  readonly hiddenSize: number;
  readonly numHeads: number;
  readonly kvRank: number;
  /** Undefined where queries are projected in one step. */
  readonly queryRank: number | undefined;
  readonly plainDim: number;
  readonly rotatedDim: number;
  readonly valueDim: number;
}

/** @throws OctavoError `artifact_invalid` */
export function readLatentConfig(path: string, json: unknown): ModelShape {
  const config = new ConfigFields(path, json);
  const hiddenSize = config.need("hidden_size");
  const numLayers = config.need("num_hidden_layers", 1024);
  const numHeads = config.need("num_attention_heads");
  const sizes: LatentSizes = {
    hiddenSize,
    numHeads,
    kvRank: config.need("kv_lora_rank"),
    queryRank: config.size("q_lora_rank"),
    plainDim: config.need("qk_nope_head_dim"),
    rotatedDim: config.need("qk_rope_head_dim"),
    valueDim: config.need("v_head_dim"),
  };
  const experts = readExperts(config);
  const vocabSize = config.need("vocab_size");
  const isTied = config.boolean("tie_word_embeddings") ?? false;
  const matrices = [matrix(embeddingKind, undefined, vocabSize, hiddenSize)];
  if (!isTied) matrices.push(matrix(headKind, undefined, vocabSize, hiddenSize));
  let vectorElements = hiddenSize;
  for (let layer = 0; layer < numLayers; layer++) {
    matrices.push(...attentionMatrices(layer, sizes));
    vectorElements += 2 * hiddenSize + sizes.kvRank + (sizes.queryRank ?? 0);
    if (experts === undefined || !experts.isSparse(layer)) {
      matrices.push(...mlpMatrices(layer, hiddenSize, config.need("intermediate_size")));
      continue;
    }
    const { count, width, sharedWidth } = experts;
    matrices.push(matrix(routerKind, layer, count, hiddenSize));
    for (const own of mlpMatrices(layer, hiddenSize, width)) {
      matrices.push({ ...own, copies: count, isRouted: true });
    }
    if (sharedWidth > 0) matrices.push(...mlpMatrices(layer, hiddenSize, sharedWidth));
    if (experts.hasCorrection) vectorElements += count;
  }
  return {
    family: config.string("model_type") ?? "",
    hiddenSize,
    numLayers,
    numHeads,
    numKvHeads: config.size("num_key_value_heads") ?? numHeads,
    headDim: config.size("head_dim") ?? hiddenSize / numHeads,
    vocabSize,
    maxPositions: config.size("max_position_embeddings", 2 ** 30),
    isTied,
    experts: experts && { count: experts.count, perToken: experts.perToken },
    isLatent: true,
    matrices,
    vectorElements,
    attention: Array.from({ length: numLayers }, () => attentionOf(sizes)),
    stateElements: 0,
  };
}

/** Keys below the architecture's prefix, and the config.json fields they stand for. Source: gguf-py/gguf/constants.py. */
const fields: readonly (readonly [string, string])[] = [
  ["embedding_length", "hidden_size"],
  ["block_count", "num_hidden_layers"],
  ["feed_forward_length", "intermediate_size"],
  ["context_length", "max_position_embeddings"],
  ["attention.head_count", "num_attention_heads"],
  ["attention.head_count_kv", "num_key_value_heads"],
  ["attention.key_length", "head_dim"],
  ["expert_count", "n_routed_experts"],
  ["expert_used_count", "num_experts_per_tok"],
  ["expert_feed_forward_length", "moe_intermediate_size"],
  ["expert_shared_count", "n_shared_experts"],
  ["leading_dense_block_count", "first_k_dense_replace"],
  ["attention.kv_lora_rank", "kv_lora_rank"],
  ["attention.q_lora_rank", "q_lora_rank"],
  ["attention.value_length_mla", "v_head_dim"],
  ["rope.dimension_count", "qk_rope_head_dim"],
];

/** @throws OctavoError `artifact_invalid` */
export function readLatentGguf(
  path: string,
  metadata: ReadonlyMap<string, unknown>,
  tensors: readonly TensorSize[] | undefined,
): ModelShape {
  const valueOf = (key: string): unknown => metadata.get(`${latentGgufArchitecture}.${key}`);
  const record: Record<string, unknown> = { model_type: "deepseek_v3" };
  for (const [key, field] of fields) record[field] = valueOf(key);
  const [whole, rotated] = [valueOf("attention.key_length_mla"), record["qk_rope_head_dim"]];
  if (typeof whole === "number" && typeof rotated === "number") record["qk_nope_head_dim"] = whole - rotated;
  const tokens = metadata.get("tokenizer.ggml.tokens");
  record["vocab_size"] = valueOf("vocab_size") ?? (tokens instanceof GgufStrings ? tokens.length : undefined);
  if (tensors !== undefined) {
    record["tie_word_embeddings"] = !tensors.some(({ name }) => name === headKind);
  }
  return readLatentConfig(path, record);
}

function attentionMatrices(layer: number, sizes: LatentSizes): WeightMatrix[] {
  const { hiddenSize, numHeads, kvRank, queryRank, plainDim, rotatedDim, valueDim } = sizes;
  const queries = numHeads * (plainDim + rotatedDim);
  return [
    ...(queryRank === undefined
      ? [matrix("attn_q.weight", layer, queries, hiddenSize)]
      : [
          matrix("attn_q_a.weight", layer, queryRank, hiddenSize),
          matrix("attn_q_b.weight", layer, queries, queryRank),
        ]),
    matrix("attn_kv_a_mqa.weight", layer, kvRank + rotatedDim, hiddenSize),
    matrix("attn_kv_b.weight", layer, numHeads * (plainDim + valueDim), kvRank),
    matrix("attn_output.weight", layer, hiddenSize, numHeads * valueDim),
  ];
}

/**
 * A latent cache is read once for all heads; its up-projections are folded into queries and outputs, so that each head
 * scores over rank + rotated elements and sums over rank.
 */
function attentionOf({ numHeads, kvRank, rotatedDim }: LatentSizes): LayerAttention {
  return {
    kvElements: kvRank + rotatedDim,
    kvVectors: 1,
    flopsPerContextToken: 2 * numHeads * (2 * kvRank + rotatedDim),
    window: undefined,
  };
}

interface LatentExperts {
  readonly count: number;
  readonly perToken: number;
  readonly width: number;
  /** 0 without shared experts. */
  readonly sharedWidth: number;
  /** DeepSeek V3's per-expert correction of the router's scores. */
  readonly hasCorrection: boolean;
  isSparse(layer: number): boolean;
}

function readExperts(config: ConfigFields): LatentExperts | undefined {
  const count = config.count("n_routed_experts") ?? 0;
  if (count === 0) return undefined;
  const perToken = config.need("num_experts_per_tok");
  if (perToken > count) throw config.invalid(`sends each token to ${perToken} of ${count} experts`);
  const width = config.need("moe_intermediate_size");
  const firstSparse = config.count("first_k_dense_replace") ?? 0;
  const frequency = config.size("moe_layer_freq") ?? 1;
  return {
    count,
    perToken,
    width,
    sharedWidth: (config.count("n_shared_experts") ?? 0) * width,
    hasCorrection: config.string("topk_method") === "noaux_tc",
    isSparse: (layer) => layer >= firstSparse && layer % frequency === 0,
  };
}

function mlpMatrices(layer: number, hiddenSize: number, width: number): WeightMatrix[] {
  return [
    matrix("ffn_gate.weight", layer, width, hiddenSize),
    matrix("ffn_up.weight", layer, width, hiddenSize),
    matrix("ffn_down.weight", layer, hiddenSize, width),
  ];
}

function matrix(kind: string, layer: number | undefined, rows: number, cols: number): WeightMatrix {
  return { kind, layer, rows, cols, copies: 1, isRouted: false };
}
