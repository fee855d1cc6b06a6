import { OctavoError } from "@octavo/protocol/errors";
import type { TensorInfo } from "../checkpoint/checkpoint.js";
import { gemmaFamily } from "../families/gemma.js";
import { gemma2Family } from "../families/gemma2.js";
import { gemma3Family } from "../families/gemma3.js";
import { gemma4Family } from "../families/gemma4.js";
import { gptOssFamily } from "../families/gpt-oss.js";
import { graniteFamily } from "../families/granite.js";
import { graniteMoeFamily } from "../families/granite-moe.js";
import { llamaFamily } from "../families/llama.js";
import { llama4Family } from "../families/llama4.js";
import { mistralFamily } from "../families/mistral.js";
import { mixtralFamily } from "../families/mixtral.js";
import { olmo2Family } from "../families/olmo2.js";
import { olmoeFamily } from "../families/olmoe.js";
import { phi3Family } from "../families/phi3.js";
import { qwen2Family } from "../families/qwen2.js";
import { qwen2MoeFamily } from "../families/qwen2-moe.js";
import { qwen3Family } from "../families/qwen3.js";
import { qwen3MoeFamily } from "../families/qwen3-moe.js";
import { qwen3VlMoeFamily } from "../families/qwen3-vl-moe.js";
import { qwen35Family } from "../families/qwen3-5.js";
import { qwen35MoeFamily } from "../families/qwen3-5-moe.js";
import { qwen3NextFamily } from "../families/qwen3-next.js";
import { lfm2Family } from "../families/lfm2.js";
import { lfm2MoeFamily } from "../families/lfm2-moe.js";
import { graniteMoeHybridFamily } from "../families/granite-moe-hybrid.js";
import { falconH1Family } from "../families/falcon-h1.js";
import { nemotronHFamily } from "../families/nemotron-h.js";
import { deepseekV2Family } from "../families/deepseek-v2.js";
import { deepseekV3Family } from "../families/deepseek-v3.js";
import { glm4MoeLiteFamily } from "../families/glm4-moe-lite.js";
import { ernie45MoeFamily } from "../families/ernie4-5-moe.js";
import { glm4MoeFamily } from "../families/glm4-moe.js";
import { miniMaxM2Family } from "../families/minimax-m2.js";
import { smolLm3Family } from "../families/smollm3.js";
import { cohere2Family } from "../families/cohere2.js";
import { ernie45Family } from "../families/ernie4-5.js";
import { exaone4Family } from "../families/exaone4.js";
import { glm4Family, glmFamily } from "../families/glm4.js";
import { graniteMoeSharedFamily } from "../families/granite-moe-shared.js";
import { ministral3Family } from "../families/ministral3.js";
import { olmo3Family } from "../families/olmo3.js";
import { seedOssFamily } from "../families/seed-oss.js";
import { bertFamily } from "../families/bert.js";
import { modernBertFamily } from "../families/modernbert.js";
import { robertaFamily, xlmRobertaFamily } from "../families/xlm-roberta.js";
import type { ModelConfig } from "./model-config.js";
import type { ModelFamily } from "./model-family.js";
import type { ModelPlan } from "./model-plan.js";
import { ProgramBuilder } from "./program-builder.js";

/** Every family; a new one is a file in `families/` and a line here. */
export const modelFamilies: readonly ModelFamily[] = [
  llamaFamily,
  llama4Family,
  graniteFamily,
  smolLm3Family,
  mistralFamily,
  mixtralFamily,
  qwen2Family,
  qwen2MoeFamily,
  qwen3Family,
  qwen3MoeFamily,
  qwen3VlMoeFamily,
  qwen35Family,
  qwen35MoeFamily,
  qwen3NextFamily,
  lfm2Family,
  lfm2MoeFamily,
  graniteMoeHybridFamily,
  falconH1Family,
  nemotronHFamily,
  glm4MoeFamily,
  ernie45MoeFamily,
  deepseekV2Family,
  deepseekV3Family,
  glm4MoeLiteFamily,
  miniMaxM2Family,
  gemmaFamily,
  gemma2Family,
  gemma3Family,
  gemma4Family,
  phi3Family,
  olmo2Family,
  olmoeFamily,
  graniteMoeFamily,
  gptOssFamily,
  olmo3Family,
  ministral3Family,
  seedOssFamily,
  exaone4Family,
  cohere2Family,
  ernie45Family,
  glmFamily,
  glm4Family,
  graniteMoeSharedFamily,
  bertFamily,
  xlmRobertaFamily,
  robertaFamily,
  modernBertFamily,
];

const byArchitecture: ReadonlyMap<string, ModelFamily> = new Map(
  modelFamilies.map((family) => [family.architecture, family]),
);

/** Names of the architectures that can be served, as `architectures` in config.json has them. */
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
