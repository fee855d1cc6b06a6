import { artifactUnsupported } from "@octavo/text/files/artifact-file";
import { f32, type GgufValue, ggufText, u32 } from "@octavo/artifacts/gguf/write-header";
import { type RopeFactors } from "@octavo/artifacts/gguf/config";
import type { Checkpoint, ModelConfig } from "@octavo/engine";
import type { GgufFamily } from "@octavo/artifacts/program/model-family";

interface RopeMetadata {
  readonly metadata: Readonly<Record<string, GgufValue>>;
  readonly factors: RopeFactors;
}

/** @throws OctavoError `artifact_unsupported` for a scaling that GGUF, or this architecture of llama.cpp, does not know */
export function ropeMetadata(
  checkpoint: Checkpoint,
  { architecture: kind, writing }: GgufFamily,
): RopeMetadata {
  const { path, config } = checkpoint;
  const { rotaryDim, theta, scaling } = config.rope;
  const key = `${kind}.rope.scaling`;
  const base = { [`${kind}.rope.dimension_count`]: u32(rotaryDim), [`${kind}.rope.freq_base`]: f32(theta) };
  if (
    writing?.takesRopeFactors !== true &&
    ["llama3", "factors", "longrope", "proportional"].includes(scaling.kind)
  ) {
    throw artifactUnsupported(
      path,
      `scales its rotary frequencies one by one, which llama.cpp's ${kind} models cannot`,
    );
  }
  switch (scaling.kind) {
    case "none":
      return { metadata: base, factors: {} };
    case "llama3":
      return { metadata: base, factors: { always: llama3Factors(config) } };
    case "proportional": {
      const numRotated = Math.floor((scaling.share * rotaryDim) / 2);
      // llama.cpp's converter takes so large a divisor for pairs that stay.
      const factors = Array.from({ length: rotaryDim / 2 }, (_, pair) =>
        pair < numRotated ? scaling.factor : 1e30,
      );
      return { metadata: base, factors: { always: Float32Array.from(factors) } };
    }
    case "linear":
      return {
        metadata: { ...base, [`${key}.type`]: ggufText("linear"), [`${key}.factor`]: f32(scaling.factor) },
        factors: {},
      };
    case "yarn": {
      const { factor, originalMaxPositions, attentionFactor } = scaling;
      // llama.cpp multiplies YaRN's own factor by the one of the file.
      const own = factor > 1 ? 1 + 0.1 * Math.log(factor) : 1;
      return {
        metadata: {
          ...base,
          [`${key}.type`]: ggufText("yarn"),
          [`${key}.factor`]: f32(factor),
          [`${key}.original_context_length`]: u32(originalMaxPositions),
          ...(attentionFactor !== undefined && { [`${key}.attn_factor`]: f32(attentionFactor / own) }),
        },
        factors: {},
      };
    }
    case "factors":
      return { metadata: base, factors: { always: scaling.factors } };
    case "longrope": {
      const { long, short, originalMaxPositions, attentionFactor } = scaling;
      return {
        metadata: {
          ...base,
          [`${key}.original_context_length`]: u32(originalMaxPositions),
          [`${key}.attn_factor`]: f32(attentionFactor),
        },
        factors: { long, short },
      };
    }
    case "dynamic":
      throw artifactUnsupported(path, "scales its rotary embedding by dynamic, which GGUF files cannot say");
  }
}

/** Llama 3's scaling as divisors of the inverse frequencies, which is how GGUF files hold it (`rope_freqs.weight`). */
export function llama3Factors({ rope }: ModelConfig): Float32Array {
  const { scaling, theta, rotaryDim } = rope;
  return Float32Array.from({ length: rotaryDim / 2 }, (_, i) => {
    if (scaling.kind !== "llama3") return 1;
    const { factor, lowFrequencyFactor: low, highFrequencyFactor: high, originalMaxPositions } = scaling;
    const wavelength = 2 * Math.PI * theta ** ((2 * i) / rotaryDim);
    if (wavelength < originalMaxPositions / high) return 1;
    if (wavelength > originalMaxPositions / low) return factor;
    const smooth = (originalMaxPositions / wavelength - low) / (high - low);
    return 1 / ((1 - smooth) / factor + smooth);
  });
}
