import { artifactUnsupported } from "@octavo/text/files/artifact-file";
import type { ConfigJson } from "../config/config-schema.js";
import {
  encoderAttention,
  encoderBuffers,
  finishEncoder,
  headLinear,
  addLayerNorm,
} from "../program/encoder-layers.js";
import type { ModelConfig } from "../program/model-config.js";
import type { ModelFamily } from "../program/model-family.js";
import type { ModelPlan } from "../program/model-plan.js";
import type { ProgramBuilder } from "../program/program-builder.js";

/** BERT (Devlin et al., arXiv 1810.04805): learned positions and types, norms behind the blocks. */
export const bertFamily: ModelFamily = {
  architecture: "BertModel",
  modelType: "bert",
  defaults: {
    hiddenSize: 768,
    numLayers: 12,
    numHeads: 12,
    intermediateSize: 3_072,
    vocabSize: 30_522,
    maxPositionEmbeddings: 512,
    hiddenActivation: "gelu",
  },
  biases: { qkv: true, output: true, mlp: true },
  encoder: { tensorPrefix: "bert.", classifierPooling: () => "cls" },
  settings: (path, config) => bertSettings(path, config, { types: 2, firstPosition: 0 }),
  gguf: {
    architecture: "bert",
    layers: "encoder.layer",
    layerNames: {
      "@token_embd.weight": "embeddings.word_embeddings.weight",
      "@position_embd.weight": "embeddings.position_embeddings.weight",
      "@token_types.weight": "embeddings.token_type_embeddings.weight",
      "@token_embd_norm.weight": "embeddings.LayerNorm.weight",
      "@token_embd_norm.bias": "embeddings.LayerNorm.bias",
      attn_q: "attention.self.query",
      attn_k: "attention.self.key",
      attn_v: "attention.self.value",
      attn_output: "attention.output.dense",
      attn_output_norm: "attention.output.LayerNorm",
      ffn_up: "intermediate.dense",
      ffn_down: "output.dense",
      layer_output_norm: "output.LayerNorm",
    },
    ropeLayout: "neox",
    // XLM-RoBERTa's files are BERT's: the converter drops the positions that stand for padding.
    settings: (values, { maxPositionEmbeddings: numPositions, embedding }) => ({
      hiddenActivation: "gelu",
      rmsNormEps: values.number("attention.layer_norm_epsilon") ?? 1e-12,
      hasHead: false,
      encoder: {
        numTypes: values.under("tokenizer.ggml").number("token_type_count") ?? 2,
        numPositions,
        firstPosition: 0,
      },
      embedding: embedding ?? { pooling: "mean", normalize: true },
    }),
  },
  plan: (builder) =>
    bertProgram(builder, (pooled, rows) => {
      const { hiddenSize } = builder.config;
      const summary = { name: "pooler.dense", rows: hiddenSize, bias: true };
      const inner = headLinear(builder, pooled, summary, "tanh");
      return headLinear(builder, inner, { name: "classifier", rows, bias: true });
    }),
};

/** `types`: as many as the config class assumes. Positions before `firstPosition` stand for padding. */
export function bertSettings(
  path: string,
  config: ConfigJson,
  { types, firstPosition }: { readonly types: number; readonly firstPosition: number },
): Partial<ModelConfig> {
  const { position_embedding_type: positions = "absolute" } = config;
  if (positions !== null && positions !== "absolute")
    throw artifactUnsupported(
      path,
      `has ${JSON.stringify(positions.slice(0, 100))} positions; absolute are supported`,
    );
  if (config.is_decoder === true) throw artifactUnsupported(path, "is a decoder of an encoder's family");
  const { defaults } = bertFamily;
  const numHeads = config.num_attention_heads ?? defaults.numHeads;
  const headDim = (config.hidden_size ?? defaults.hiddenSize) / numHeads;
  const numPositions = config.max_position_embeddings ?? defaults.maxPositionEmbeddings;
  return {
    headDim,
    numKvHeads: numHeads,
    rmsNormEps: config.layer_norm_eps ?? 1e-12,
    maxPositionEmbeddings: numPositions - firstPosition,
    rope: { theta: 10_000, rotaryDim: headDim, layout: "neox", scaling: { kind: "none" } },
    encoder: { numTypes: config.type_vocab_size ?? types, numPositions, firstPosition },
  };
}

export function bertProgram(
  builder: ProgramBuilder,
  classify: Parameters<typeof finishEncoder>[2],
): ModelPlan {
  const { config } = builder;
  const { hiddenSize, intermediateSize, hiddenActivation } = config;
  const buffers = encoderBuffers(builder);
  const { stream, normed, update, qkv, attended } = buffers;
  const inner = builder.buffer(intermediateSize);
  const { numTypes = 0, numPositions = 0, firstPosition = 0 } = config.encoder ?? {};
  const table = (kind: string, rows: number): ReturnType<ProgramBuilder["matrix"]> =>
    builder.matrix(`embeddings.${kind}_embeddings.weight`, rows, hiddenSize);
  builder.add({ op: "embedding", weight: table("word", config.vocabSize), out: stream });
  const positions = table("position", numPositions);
  builder.add({ op: "embedding", weight: positions, out: update, of: "position", offset: firstPosition });
  builder.add({ op: "add", in: update, out: stream });
  builder.add({ op: "embedding", weight: table("token_type", numTypes), out: normed, of: "type" });
  builder.add({ op: "add", in: normed, out: stream });
  addLayerNorm(builder, "embeddings.LayerNorm", [stream, normed], { hasBias: true });
  const linear = (name: string, input: typeof stream, out: typeof stream): void =>
    builder.project(input, [{ name, rows: out.width ?? 0, bias: true }], input.width ?? 0, out);
  for (let layer = 0; layer < config.numLayers; layer++) {
    const name = `encoder.layer.${layer}`;
    const projections = ["query", "key", "value"].map((part) => ({
      name: `${name}.attention.self.${part}`,
      rows: hiddenSize,
      bias: true,
    }));
    builder.project(normed, projections, hiddenSize, qkv);
    encoderAttention(builder, buffers, layer, false);
    linear(`${name}.attention.output.dense`, attended, update);
    // The sum of the block's input and its update is normalised, and nothing else is kept of it.
    addLayerNorm(builder, `${name}.attention.output.LayerNorm`, [update, stream], {
      hasBias: true,
      residual: normed,
    });
    linear(`${name}.intermediate.dense`, stream, inner);
    if (hiddenActivation !== "clamped_swiglu")
      builder.add({ op: "activation", on: inner, activation: hiddenActivation });
    linear(`${name}.output.dense`, inner, update);
    addLayerNorm(builder, `${name}.output.LayerNorm`, [update, normed], { hasBias: true, residual: stream });
  }
  return finishEncoder(builder, normed, classify);
}
