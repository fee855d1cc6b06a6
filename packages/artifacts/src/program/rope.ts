import type { RopeSpec } from "@octavo/kernels";
import type { RopeConfig, RopeScaling } from "./model-config.js";

/**
 * Inverse frequencies and the factor on cos and sin for a checkpoint's rotary embedding.
 *
 * Follows transformers' `modeling_rope_utils.py`. Dynamic NTK follows vLLM instead, which fixes the frequencies at the
 * full extended length: with transformers' rule they move while a sequence grows, so that cached keys would no
 * longer fit and the same prompt would give other tokens under another schedule. For the same reason the longest sequence that is
 * served, not the current one, chooses LongRoPE's list of factors (arXiv 2402.13753), as in vLLM.
 *
 * @param maxPositions - tokens of the longest sequence
 */
export function ropeSpec(rope: RopeConfig, maxPositions: number): RopeSpec {
  return {
    inverseFrequencies: Float32Array.from(scaledFrequencies(rope, maxPositions)),
    attentionFactor: attentionFactor(rope.scaling),
    layout: rope.layout,
    ...(rope.axes !== undefined && { axes: rope.axes }),
  };
}

/** A rotation by nothing, for queries that grow without one. */
export function unrotated(headDim: number): RopeSpec {
  return { inverseFrequencies: new Float32Array(headDim / 2), attentionFactor: 1, layout: "neox" };
}

function attentionFactor(scaling: RopeScaling): number {
  if (scaling.kind === "yarn") return yarnAttentionFactor(scaling);
  return scaling.kind === "longrope" ? scaling.attentionFactor : 1;
}

function scaledFrequencies(rope: RopeConfig, maxPositions: number): number[] {
  const { theta, rotaryDim, scaling } = rope;
  const plain = inverseFrequencies(theta, rotaryDim);
  switch (scaling.kind) {
    case "none":
      return plain;
    case "linear":
      return plain.map((frequency) => frequency / scaling.factor);
    case "proportional": {
      const numRotated = Math.floor((scaling.share * rotaryDim) / 2);
      return plain.map((frequency, pair) => (pair < numRotated ? frequency / scaling.factor : 0));
    }
    case "dynamic":
      return inverseFrequencies(theta * dynamicThetaFactor(scaling.factor, rotaryDim), rotaryDim);
    case "llama3":
      return plain.map((frequency) => llama3Frequency(frequency, scaling));
    case "yarn":
      return yarnFrequencies(plain, theta, rotaryDim, scaling);
    case "factors":
      return divided(plain, scaling.factors);
    case "longrope":
      return divided(plain, maxPositions > scaling.originalMaxPositions ? scaling.long : scaling.short);
  }
}

function divided(frequencies: readonly number[], factors: Float32Array): number[] {
  return frequencies.map((frequency, pair) => frequency / (factors[pair] ?? 1));
}

function inverseFrequencies(theta: number, rotaryDim: number): number[] {
  return Array.from({ length: rotaryDim / 2 }, (_, pair) => theta ** ((-2 * pair) / rotaryDim));
}

/** vLLM's rule: the NTK formula at length `factor * original`, where the original length cancels out. */
function dynamicThetaFactor(factor: number, rotaryDim: number): number {
  return (factor * factor - (factor - 1)) ** (rotaryDim / (rotaryDim - 2));
}

/** Long waves are stretched by the factor, short ones kept, those between blended (Llama 3.1). */
function llama3Frequency(frequency: number, scaling: Extract<RopeScaling, { kind: "llama3" }>): number {
  const { factor, lowFrequencyFactor: low, highFrequencyFactor: high } = scaling;
  const turns = (scaling.originalMaxPositions * frequency) / (2 * Math.PI);
  if (turns < low) return frequency / factor;
  if (turns >= high) return frequency;
  const kept = (turns - low) / (high - low);
  return ((1 - kept) * frequency) / factor + kept * frequency;
}

type Yarn = Extract<RopeScaling, { kind: "yarn" }>;

/** Peng et al., "YaRN" (arXiv 2309.00071), §3.2: a ramp over dimensions between interpolated and kept frequencies. */
function yarnFrequencies(
  plain: readonly number[],
  theta: number,
  rotaryDim: number,
  scaling: Yarn,
): number[] {
  const dimensionOf = (turns: number): number =>
    (rotaryDim * Math.log(scaling.originalMaxPositions / (turns * 2 * Math.PI))) / (2 * Math.log(theta));
  let low = dimensionOf(scaling.betaFast);
  let high = dimensionOf(scaling.betaSlow);
  if (scaling.truncate) {
    low = Math.floor(low);
    high = Math.ceil(high);
  }
  low = Math.max(low, 0);
  high = Math.min(high, rotaryDim - 1);
  if (low === high) high += 0.001;
  return plain.map((frequency, pair) => {
    const interpolated = Math.min(Math.max((pair - low) / (high - low), 0), 1);
    return (frequency / scaling.factor) * interpolated + frequency * (1 - interpolated);
  });
}

function yarnAttentionFactor(scaling: Yarn): number {
  if (scaling.attentionFactor !== undefined) return scaling.attentionFactor;
  const magnitude = (mscale: number): number =>
    scaling.factor <= 1 ? 1 : 0.1 * mscale * Math.log(scaling.factor) + 1;
  if (scaling.mscale && scaling.mscaleAllDim)
    return magnitude(scaling.mscale) / magnitude(scaling.mscaleAllDim);
  return magnitude(1);
}
