import { OctavoError } from "@octavo/protocol/errors";
import type { TensorInfo } from "../checkpoint/checkpoint.js";
import { gemma } from "../families/gemma.js";
import { gemma2 } from "../families/gemma2.js";
import { gemma3 } from "../families/gemma3.js";
import { gptOss } from "../families/gpt-oss.js";
import { granite } from "../families/granite.js";
import { graniteMoe } from "../families/granite-moe.js";
import { llama } from "../families/llama.js";
import { mistral } from "../families/mistral.js";
import { mixtral } from "../families/mixtral.js";
import { olmo2 } from "../families/olmo2.js";
import { olmoe } from "../families/olmoe.js";
import { phi3 } from "../families/phi3.js";
import { qwen2 } from "../families/qwen2.js";
import { qwen2Moe } from "../families/qwen2-moe.js";
import { qwen3 } from "../families/qwen3.js";
import { qwen3Moe } from "../families/qwen3-moe.js";
import { smolLm3 } from "../families/smollm3.js";
import type { ModelConfig } from "./model-config.js";
import type { ModelFamily } from "./model-family.js";
import type { ModelPlan } from "./model-plan.js";
import { ProgramBuilder } from "./program-builder.js";

/** Every family; a new one is a file in `families/` and a line here. */
export const modelFamilies: readonly ModelFamily[] = [
  llama,
  granite,
  smolLm3,
  mistral,
  mixtral,
  qwen2,
  qwen2Moe,
  qwen3,
  qwen3Moe,
  gemma,
  gemma2,
  gemma3,
  phi3,
  olmo2,
  olmoe,
  graniteMoe,
  gptOss,
];

const byArchitecture: ReadonlyMap<string, ModelFamily> = new Map(
  modelFamilies.map((family) => [family.architecture, family]),
);

export const supportedArchitectures: readonly string[] = [...byArchitecture.keys()];

/** @throws OctavoError `artifact_unsupported` for an unknown architecture */
export function modelFamily(architecture: string): ModelFamily {
  const family = byArchitecture.get(architecture);
  if (family !== undefined) return family;
  throw new OctavoError(
    "artifact_unsupported",
    `The architecture "${architecture}" is not supported. Supported: ${supportedArchitectures.join(", ")}.`,
  );
}

/**
 * The program of a checkpoint.
 * @param tensors absent: those that a checkpoint of this configuration would have
 * @throws OctavoError `artifact_unsupported` for an unknown architecture, `artifact_invalid` for tensors that do not fit
 */
export function planModel(config: ModelConfig, tensors?: ReadonlyMap<string, TensorInfo>): ModelPlan {
  return modelFamily(config.architecture).plan(new ProgramBuilder(config, tensors));
}
