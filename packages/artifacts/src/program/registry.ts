import { OctavoError } from "@octavo/protocol/errors";
import type { TensorInfo } from "../checkpoint/checkpoint.js";
import { gemma2 } from "../families/gemma2.js";
import { gemma3 } from "../families/gemma3.js";
import { gptOss } from "../families/gpt-oss.js";
import { graniteMoe } from "../families/granite-moe.js";
import { llama } from "../families/llama.js";
import { mistral } from "../families/mistral.js";
import { mixtral } from "../families/mixtral.js";
import type { ModelConfig } from "./model-config.js";
import type { ModelFamily } from "./model-family.js";
import type { ModelPlan } from "./model-plan.js";
import { olmo2 } from "../families/olmo2.js";
import { olmoe } from "../families/olmoe.js";
import { phi3 } from "../families/phi3.js";
import { ProgramBuilder } from "./program-builder.js";
import { qwen2Moe, qwen3Moe } from "../families/qwen-moe.js";
import { qwen2 } from "../families/qwen2.js";
import { qwen3 } from "../families/qwen3.js";

/** A new family enters here: one file beside this one and one row. */
const families: readonly ModelFamily[] = [
  llama,
  mistral,
  mixtral,
  qwen2,
  qwen2Moe,
  qwen3,
  qwen3Moe,
  gemma2,
  gemma3,
  phi3,
  olmo2,
  olmoe,
  graniteMoe,
  gptOss,
];

const familyOf: ReadonlyMap<string, ModelFamily> = new Map(
  families.flatMap((family) => family.architectures.map((architecture) => [architecture, family] as const)),
);

export const supportedArchitectures: readonly string[] = [...familyOf.keys()];

/** The program of a checkpoint; throws `artifact_unsupported` for an unknown architecture. */
export function planModel(config: ModelConfig, tensors: ReadonlyMap<string, TensorInfo>): ModelPlan {
  const family = familyOf.get(config.architecture);
  if (family === undefined) {
    throw new OctavoError(
      "artifact_unsupported",
      `The architecture "${config.architecture}" is not supported. Supported: ${supportedArchitectures.join(", ")}.`,
    );
  }
  return family.plan(new ProgramBuilder(config, tensors));
}
