import { artifactUnsupported } from "@octavo/text/files/artifact-file";
import type { ConfigJson } from "../config/config-schema.js";
import { positive } from "../config/model-sizes.js";
import { readStateSpace, readStateSpaceGguf, stateSpaceLayerNames } from "../config/state-space-config.js";
import { llamaLayerNames } from "../gguf/names.js";
import { decoder } from "../program/layers.js";
import type { ModelConfig } from "../program/model-config.js";
import type { ModelFamily } from "../program/model-family.js";
import { stateSpace } from "../program/recurrent-layers.js";

const names = {
  finalNorm: "model.final_layernorm",
  secondNorm: "pre_ff_layernorm",
  gate: "feed_forward.gate_proj",
  up: "feed_forward.up_proj",
  down: "feed_forward.down_proj",
} as const;

/** Falcon-H1: attention and Mamba-2 side by side in every layer, with a multiplier wherever something is projected. */
export const falconH1Family: ModelFamily = {
  architecture: "FalconH1ForCausalLM",
  modelType: "falcon_h1",
  defaults: {
    hiddenSize: 4_096,
    numLayers: 32,
    numHeads: 32,
    numKvHeads: 8,
    intermediateSize: 14_336,
    vocabSize: 128_000,
    maxPositionEmbeddings: 8_192,
    rmsNormEps: 1e-5,
    bosTokenId: 1,
    eosTokenId: 2,
  },
  biases: { qkv: "config", output: "config", mlp: "config" },
  settings: (path, config) => ({
    embeddingScale: positive(path, "embedding_multiplier", config.embedding_multiplier ?? 1),
    logitScale: positive(path, "lm_head_multiplier", config.lm_head_multiplier ?? 1),
    ...falconScales(path, config),
  }),
  gguf: {
    architecture: "falcon-h1",
    layerNames: {
      ...llamaLayerNames,
      ...stateSpaceLayerNames("mamba"),
      "@output_norm.weight": "model.final_layernorm.weight",
      // Its converter leaves the ending out.
      "=ffn_norm": "pre_ff_layernorm.weight",
      ffn_norm: "pre_ff_layernorm",
      ffn_gate: "feed_forward.gate_proj",
      ffn_up: "feed_forward.up_proj",
      ffn_down: "feed_forward.down_proj",
    },
    ropeLayout: "neox",
    // The converter multiplies the weights.
    settings: (values, { numLayers }) => ({
      recurrence: readStateSpaceGguf(values, everyLayer(numLayers), "after_gate"),
    }),
  },
  plan: (builder) => {
    const { recurrence, multipliers: scales } = builder.config;
    const mix = stateSpace(builder, "mamba", {
      isNormOptional: recurrence?.kind === "state_space" && recurrence.rateForm === "negative",
    });
    return decoder(
      builder,
      (layer) => {
        layer.attentionBeside(mix, scales === undefined ? {} : { scales: scales.attention });
        layer.gatedMlp(scales === undefined ? {} : { scales: scales.mlp });
      },
      { names },
    );
  },
};

/** No layer is without attention. */
function everyLayer(numLayers: number): boolean[] {
  return Array.from({ length: Math.min(numLayers, 1_024) }, () => false);
}

function falconScales(path: string, config: ConfigJson): Partial<ModelConfig> {
  const scale = (
    name: `${"attention_in" | "attention_out" | "key" | "ssm_in" | "ssm_out"}_multiplier`,
  ): number => positive(path, name, config[name] ?? 1);
  const [gate = 1, down = 1] = config.mlp_multipliers ?? [];
  const ssm = config.ssm_multipliers ?? [1, 1, 1, 1, 1];
  const [attentionIn, ssmIn] = [scale("attention_in_multiplier"), scale("ssm_in_multiplier")];
  // What is multiplied before a projection here is multiplied behind it, where a bias would be multiplied too.
  const isBiased =
    (config.attention_bias === true && attentionIn !== 1) || (config.mamba_proj_bias === true && ssmIn !== 1);
  if (isBiased || (config.projectors_bias ?? false) !== (config.mamba_proj_bias ?? false))
    throw artifactUnsupported(path, "has biases beside its multipliers in a way that is not supported");
  const norm = config.mamba_norm_before_gate === false ? "after_gate" : "before_gate";
  const layers = everyLayer(config.num_hidden_layers ?? 32);
  const sizes = { mamba_d_ssm: 1_024, ...config };
  return {
    multipliers: {
      attention: {
        input: attentionIn,
        key: scale("key_multiplier"),
        output: scale("attention_out_multiplier"),
      },
      mlp: { gate: positive(path, "mlp_multipliers", gate), output: positive(path, "mlp_multipliers", down) },
    },
    recurrence: {
      ...readStateSpace(
        path,
        sizes,
        config.hidden_size ?? 4_096,
        layers,
        config.mamba_rms_norm === true ? norm : "none",
      ),
      inputScales: ssm.map((value) => positive(path, "ssm_multipliers", value) * ssmIn),
      outputScale: scale("ssm_out_multiplier"),
    },
  };
}
