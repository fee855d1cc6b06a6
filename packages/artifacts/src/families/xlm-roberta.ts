import { headLinear } from "../program/encoder-layers.js";
import type { ModelFamily } from "../program/model-family.js";
import { bertFamily, bertProgram, bertSettings } from "./bert.js";

/** XLM-RoBERTa (arXiv 1911.02116), which BGE-M3 is: BERT's layers, with positions from behind that of padding on. */
export const xlmRobertaFamily: ModelFamily = {
  ...bertFamily,
  architecture: "XLMRobertaModel",
  modelType: "xlm-roberta",
  encoder: { tensorPrefix: "roberta.", classifierPooling: () => "cls" },
  settings: (path, config) =>
    bertSettings(path, config, { types: 2, firstPosition: (config.pad_token_id ?? 1) + 1 }),
  plan: (builder) =>
    bertProgram(builder, (pooled, rows) => {
      const { hiddenSize } = builder.config;
      const first = { name: "classifier.dense", rows: hiddenSize, bias: true };
      const inner = headLinear(builder, pooled, first, "tanh");
      return headLinear(builder, inner, { name: "classifier.out_proj", rows, bias: true });
    }),
};

/** RoBERTa (arXiv 1907.11692). */
export const robertaFamily: ModelFamily = {
  ...xlmRobertaFamily,
  architecture: "RobertaModel",
  modelType: "roberta",
};
