import { OctavoError } from "@octavo/protocol/errors";
import { decoder } from "../program/layers.js";
import type { ExpertNames } from "../program/mixture-of-experts.js";
import type { ModelFamily } from "../program/model-family.js";

const names: ExpertNames = {
  router: "mlp.router",
  expert: (index) => ({
    gate: `mlp.experts.${index}.gate_proj`,
    up: `mlp.experts.${index}.up_proj`,
    down: `mlp.experts.${index}.down_proj`,
  }),
  fused: { gateUp: "mlp.experts.gate_up_proj", down: "mlp.experts.down_proj" },
  biases: { gateUp: "mlp.experts.gate_up_proj_bias", down: "mlp.experts.down_proj_bias" },
};

/**
 * GPT-OSS (arXiv 2508.10925): attention sinks, every other layer with a sliding window, experts in MXFP4 with biases and a clamped
 * activation.
 */
export const gptOss: ModelFamily = {
  architectures: ["GptOssForCausalLM"],
  plan: (builder) => {
    const fused = builder.find(`model.layers.0.${names.fused.gateUp}`);
    if (fused !== undefined && fused.recipe === undefined) {
      throw new OctavoError(
        "artifact_unsupported",
        `Tensor "${fused.name}" in ${fused.path} is ${fused.type}: GPT-OSS is read with its experts in MXFP4, as published, or from GGUF.`,
      );
    }
    return decoder(builder, (layer) => {
      layer.attention({ qkvBias: true, outputBias: true, sinks: true });
      layer.experts(names);
    });
  },
};
