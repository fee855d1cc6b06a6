import type { ConfigJson } from "../config/config-schema.js";
import { readRopeScaling } from "../config/rope-config.js";
import { artifactUnsupported } from "@octavo/text/files/artifact-file";
import {
  encoderAttention,
  encoderBuffers,
  finishEncoder,
  headLinear,
  addLayerNorm,
} from "../program/encoder-layers.js";
import type { ModelConfig, RopeConfig } from "../program/model-config.js";
import type { ModelFamily } from "../program/model-family.js";
import type { ModelPlan } from "../program/model-plan.js";
import type { ProgramBuilder } from "../program/program-builder.js";

const defaultTheta = { full_attention: 160_000, sliding_attention: 10_000 } as const;

/** ModernBERT (arXiv 2412.13663): rotary positions, gated MLPs, norms before the blocks, a window in two layers of three. */
export const modernBertFamily: ModelFamily = {
  architecture: "ModernBertModel",
  modelType: "modernbert",
  defaults: {
    hiddenSize: 768,
    numLayers: 22,
    numHeads: 12,
    intermediateSize: 1_152,
    vocabSize: 50_368,
    maxPositionEmbeddings: 8_192,
    hiddenActivation: "gelu",
  },
  biases: { qkv: "config", output: "config", mlp: "config" },
  encoder: {
    tensorPrefix: "model.",
    classifierPooling: ({ classifier_pooling: pooling }) => (pooling === "mean" ? "mean" : "cls"),
  },
  hasWindow: (layer, config) => layer % (config.global_attn_every_n_layers ?? 3) !== 0,
  windowSize: ({ local_attention: size }) => Math.floor((size ?? 128) / 2) + 1,
  settings: readSettings,
  plan: program,
};

function readSettings(path: string, config: ConfigJson, rope: RopeConfig): Partial<ModelConfig> {
  const numHeads = config.num_attention_heads ?? modernBertFamily.defaults.numHeads;
  const headDim = (config.hidden_size ?? modernBertFamily.defaults.hiddenSize) / numHeads;
  const { classifier_activation: activation } = config;
  if (activation && activation !== "gelu")
    throw artifactUnsupported(
      path,
      `has the classifier's activation ${JSON.stringify(activation.slice(0, 100))}`,
    );
  const rotation = (layers: keyof typeof defaultTheta, given: number | null | undefined): RopeConfig => {
    const own = config.rope_parameters?.[layers] ?? undefined;
    const scaling = readRopeScaling(path, own, config.max_position_embeddings ?? 8_192, undefined);
    return { ...rope, rotaryDim: headDim, theta: own?.rope_theta ?? given ?? defaultTheta[layers], scaling };
  };
  return {
    headDim,
    numKvHeads: numHeads,
    rmsNormEps: config.norm_eps ?? 1e-5,
    rope: rotation("full_attention", config.global_rope_theta),
    localRope: rotation("sliding_attention", config.local_rope_theta),
    encoder: {
      numTypes: 0,
      numPositions: 0,
      firstPosition: 0,
      normBias: config.norm_bias ?? false,
      classifierBias: config.classifier_bias ?? false,
    },
  };
}

function program(builder: ProgramBuilder): ModelPlan {
  const { config } = builder;
  const { hiddenSize, intermediateSize, hiddenActivation, attentionBias, mlpBias } = config;
  const { normBias: hasBias = false, classifierBias = false } = config.encoder ?? {};
  const buffers = encoderBuffers(builder);
  const { stream, normed, update, qkv, attended } = buffers;
  const gateUp = builder.buffer(2 * intermediateSize);
  const activated = builder.buffer(intermediateSize);
  const words = builder.matrix("embeddings.tok_embeddings.weight", config.vocabSize, hiddenSize);
  builder.add({ op: "embedding", weight: words, out: update });
  addLayerNorm(builder, "embeddings.norm", [update, stream], { hasBias });
  const linear = (name: string, [input, out]: readonly (typeof stream)[], bias: boolean): void => {
    if (input !== undefined && out !== undefined)
      builder.project(input, [{ name, rows: out.width ?? 0, bias }], input.width ?? 0, out);
  };
  const enter = (norm: string): void =>
    addLayerNorm(builder, norm, [update, normed], { hasBias, residual: stream });
  for (let layer = 0; layer < config.numLayers; layer++) {
    const name = `layers.${layer}`;
    if (layer > 0) enter(`${name}.attn_norm`);
    linear(`${name}.attn.Wqkv`, [layer === 0 ? stream : normed, qkv], attentionBias);
    encoderAttention(builder, buffers, layer, true);
    linear(`${name}.attn.Wo`, [attended, update], attentionBias);
    enter(`${name}.mlp_norm`);
    linear(`${name}.mlp.Wi`, [normed, gateUp], mlpBias);
    builder.add({ op: "gated_activation", in: gateUp, out: activated, activation: hiddenActivation });
    linear(`${name}.mlp.Wo`, [activated, update], mlpBias);
  }
  enter("final_norm");
  return finishEncoder(builder, normed, (pooled, rows) => {
    const first = { name: "head.dense", rows: hiddenSize, bias: classifierBias };
    const inner = headLinear(builder, pooled, first, "gelu");
    const ready = builder.buffer(hiddenSize);
    addLayerNorm(builder, "head.norm", [inner, ready], { hasBias });
    return headLinear(builder, ready, { name: "classifier", rows, bias: true });
  });
}
