import type { ExpertsConfig, ModelConfig } from "../program/model-config.js";
import { artifactInvalid } from "@octavo/text/files/artifact-file";
import type { ConfigDefaults, ExpertRouting } from "../program/model-family.js";
import type { ConfigJson } from "./config-schema.js";

const maxExperts = 4_096;
const maxInnerSize = 1_048_576;

/** The mixture of experts that a config.json describes; empty for families without one. */
export function readExperts(
  path: string,
  config: ConfigJson,
  defaults: ConfigDefaults,
  intermediateSize: number,
  numLayers: number,
): Pick<ModelConfig, "experts"> {
  const { experts } = defaults;
  if (experts === undefined) return {};
  const countKey =
    config.num_local_experts !== undefined
      ? "num_local_experts"
      : config.n_routed_experts !== undefined
        ? "n_routed_experts"
        : config.moe_num_experts !== undefined
          ? "moe_num_experts"
          : "num_experts";
  if (experts.isAbsent?.(config) === true) return {};
  const { shared_expert_intermediate_size: qwens, shared_intermediate_size: granites } = config;
  const sharedSize = experts.sharedSize?.(config) ?? qwens ?? granites ?? experts.sharedIntermediateSize;
  const hasShared = experts.sharedIntermediateSize !== undefined && sharedSize !== 0;
  const sharedIntermediateSize = hasShared ? sharedSize : undefined;
  const { normalizeWeights: normalized } = experts;
  const absent = typeof normalized === "boolean" ? normalized : normalized.absent;
  const { norm_topk_prob: given = absent } = config;
  return {
    experts: checkExperts(
      path,
      {
        count: config[countKey] ?? experts.count,
        perToken: config.num_experts_per_tok ?? config.moe_k ?? config.top_k_experts ?? experts.perToken,
        intermediateSize:
          experts.intermediateSize === undefined
            ? intermediateSize
            : (config.moe_intermediate_size ?? experts.intermediateSize),
        normalizeWeights: typeof normalized === "boolean" ? normalized : (given ?? false),
        ...(sharedIntermediateSize !== undefined && { sharedIntermediateSize }),
        denseLayers: denseLayers(path, config, numLayers, experts.numDenseLayers?.(config) ?? 0),
        ...experts.routing?.(config),
      },
      {
        count: countKey,
        perToken: "num_experts_per_tok",
        intermediateSize:
          experts.intermediateSize === undefined ? "intermediate_size" : "moe_intermediate_size",
        sharedIntermediateSize: "shared_expert_intermediate_size",
      },
    ),
  };
}

/** DeepSeek V3's groups of experts; empty where all experts are one group. */
export function groupsOf({ n_group: count, topk_group: chosen }: ConfigJson): ExpertRouting {
  return (count ?? 1) > 1 ? { groups: { count: count ?? 1, chosen: chosen ?? 1, by: "two_best" } } : {};
}

/**
 * All but `moe_layers`, where listed; else the first `numFirst` and, of the others, by Qwen's rule: every `decoder_sparse_step`-th layer is
 * a mixture, but for `mlp_only_layers`.
 */
function denseLayers(path: string, config: ConfigJson, numLayers: number, numFirst: number): boolean[] {
  const { moe_layers: listed, mlp_only_layers: without } = config;
  const length = Math.min(Math.max(Math.trunc(numLayers), 0), 1_024);
  if (listed) return Array.from({ length }, (_, layer) => !listed.includes(layer));
  const interleaved = config.interleave_moe_layer_step ?? undefined;
  const step = interleaved ?? config.decoder_sparse_step ?? config.moe_layer_interval ?? 1;
  const key = interleaved === undefined ? "decoder_sparse_step" : "interleave_moe_layer_step";
  if (!Number.isSafeInteger(step) || step < 1) throw artifactInvalid(path, `has ${key} ${step}`);
  const dense = new Set(without);
  return Array.from(
    { length },
    (_, layer) => layer < numFirst || dense.has(layer) || (layer + 1) % step !== 0,
  );
}

/** Sizes within bounds and consistent; `keys` are the file's names for them. */
export function checkExperts(
  path: string,
  experts: ExpertsConfig,
  keys: Readonly<Record<"count" | "perToken" | "intermediateSize" | "sharedIntermediateSize", string>>,
): ExpertsConfig {
  const { count, perToken, intermediateSize, sharedIntermediateSize, groups, weightScale = 1 } = experts;
  const check = (key: string, value: number, most: number): void => {
    if (Number.isSafeInteger(value) && value >= 1 && value <= most) return;
    throw artifactInvalid(path, `has ${key} ${value}; a whole number from 1 to ${most} is needed`);
  };
  check(keys.count, count, maxExperts);
  check(keys.intermediateSize, intermediateSize, maxInnerSize);
  if (sharedIntermediateSize !== undefined) {
    check(keys.sharedIntermediateSize, sharedIntermediateSize, maxInnerSize);
  }
  if (!Number.isSafeInteger(perToken) || perToken < 1 || perToken > count) {
    throw artifactInvalid(
      path,
      `has ${keys.perToken} ${perToken}, but ${keys.count} is ${count}: a token cannot go to more experts than there are`,
    );
  }
  if (!(weightScale > 0 && Number.isFinite(weightScale)))
    throw artifactInvalid(path, `scales its experts' weights by ${weightScale}; a positive number is needed`);
  if (groups !== undefined) {
    check("the number of groups of experts", groups.count, count);
    check("the number of groups a token goes to", groups.chosen, groups.count);
    if (count % groups.count !== 0 || perToken > (groups.chosen * count) / groups.count)
      throw artifactInvalid(
        path,
        `chooses ${perToken} of ${count} experts in ${groups.chosen} of ${groups.count} groups`,
      );
  }
  return experts;
}
