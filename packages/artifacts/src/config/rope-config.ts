import { artifactInvalid, artifactUnsupported } from "@octavo/text/files/artifact-file";
import type { RopeConfig, RopeScaling } from "../program/model-config.js";
import type { ConfigJson, RopeParameters } from "./config-schema.js";

/** @throws OctavoError `artifact_invalid` for a missing factor, `artifact_unsupported` for an unknown kind */
export function readRopeScaling(
  path: string,
  parameters: RopeParameters | undefined,
  maxPositions: number,
  originalPositions?: number | null,
): RopeScaling {
  const kind = parameters?.rope_type ?? parameters?.type ?? "default";
  // With mrope, positions of images have three parts; those of text are the same in all.
  if (parameters === undefined || kind === "default" || kind === "mrope") return { kind: "none" };
  const originalMaxPositions =
    parameters.original_max_position_embeddings ?? originalPositions ?? maxPositions;
  const need = (name: "factor" | "low_freq_factor" | "high_freq_factor"): number => {
    const value = parameters[name];
    if (value === undefined || value === null)
      throw artifactInvalid(path, `has ${kind} rope scaling without ${name}`);
    return value;
  };
  switch (kind) {
    case "linear":
      return { kind, factor: need("factor") };
    case "proportional":
      return { kind, share: parameters.partial_rotary_factor ?? 1, factor: parameters.factor ?? 1 };
    case "dynamic":
      return { kind, factor: need("factor"), originalMaxPositions };
    case "llama3": {
      const lowFrequencyFactor = need("low_freq_factor");
      const highFrequencyFactor = need("high_freq_factor");
      // Equal in Llama 4 Scout: nothing is blended.
      if (!(highFrequencyFactor >= lowFrequencyFactor)) {
        throw artifactInvalid(
          path,
          `has llama3 rope scaling whose high_freq_factor is below its low_freq_factor`,
        );
      }
      return { kind, factor: need("factor"), lowFrequencyFactor, highFrequencyFactor, originalMaxPositions };
    }
    case "yarn":
      return {
        kind,
        factor: parameters.factor ?? maxPositions / originalMaxPositions,
        originalMaxPositions,
        betaFast: parameters.beta_fast ?? 32,
        betaSlow: parameters.beta_slow ?? 1,
        attentionFactor: parameters.attention_factor ?? undefined,
        mscale: parameters.mscale ?? undefined,
        mscaleAllDim: parameters.mscale_all_dim ?? undefined,
        truncate: parameters.truncate ?? true,
      };
    case "longrope":
    case "su":
      return longRope(path, parameters, maxPositions, originalMaxPositions);
    default:
      throw artifactUnsupported(
        path,
        `has rope scaling of type ${JSON.stringify(kind)}; supported are default, linear, dynamic, llama3, yarn, longrope and proportional`,
      );
  }
}

/** The rotation of layers with a window: the model's without its scaling, unless `rope_parameters` says otherwise. */
export function readLocalRope(path: string, config: ConfigJson, rope: RopeConfig): RopeConfig {
  const parameters = config.rope_parameters?.sliding_attention ?? undefined;
  const scaling = readRopeScaling(path, parameters, config.max_position_embeddings ?? 131_072);
  return { ...rope, theta: parameters?.rope_theta ?? rope.theta, scaling };
}

/** LongRoPE (arXiv 2402.13753) as Phi-3 has it. */
function longRope(
  path: string,
  parameters: RopeParameters,
  maxPositions: number,
  originalMaxPositions: number,
): RopeScaling {
  const extended = maxPositions / originalMaxPositions;
  const factorsOf = (name: "short_factor" | "long_factor"): Float32Array => {
    const factors = parameters[name];
    if (!factors) throw artifactInvalid(path, `has longrope rope scaling without ${name}`);
    return Float32Array.from(factors);
  };
  const attentionFactor =
    parameters.attention_factor ??
    (extended > 1 ? Math.sqrt(1 + Math.log(extended) / Math.log(originalMaxPositions)) : 1);
  return {
    kind: "longrope",
    short: factorsOf("short_factor"),
    long: factorsOf("long_factor"),
    originalMaxPositions,
    attentionFactor,
  };
}
