import { artifactUnsupported } from "@octavo/text/files/artifact-file";
import type { ModelConfig } from "@octavo/engine";
import { llama3Factors } from "./rope-metadata.js";

type RopeConfig = ModelConfig["rope"];

/** Settings that change a model's outputs; absent ones are replaced by their defaults before comparison. */
const settings: Readonly<Record<string, (config: ModelConfig) => unknown>> = {
  "hidden size": ({ hiddenSize }) => hiddenSize,
  "number of layers": ({ numLayers }) => numLayers,
  heads: ({ numHeads, numKvHeads, headDim }) => [numHeads, numKvHeads, headDim],
  "inner size": ({ intermediateSize }) => intermediateSize,
  "norm epsilon": ({ rmsNormEps }) => rmsNormEps,
  "greatest length": ({ maxPositionEmbeddings }) => maxPositionEmbeddings,
  "output head": ({ tieWordEmbeddings }) => tieWordEmbeddings,
  activation: ({ hiddenActivation }) => hiddenActivation,
  "sliding windows": ({ slidingWindows }) => slidingWindows,
  "embedding scale": ({ embeddingScale = 1 }) => embeddingScale,
  "residual scale": ({ residualScale = 1 }) => residualScale,
  "logit scale": ({ logitScale = 1 }) => logitScale,
  "attention scale": ({ attentionScale, headDim }) => attentionScale ?? headDim ** -0.5,
  "bound of queries, keys and values": ({ attentionClip = 0 }) => attentionClip,
  "cap of scores": ({ attentionSoftCap = 0 }) => attentionSoftCap,
  "cap of logits": ({ logitSoftCap = 0 }) => logitSoftCap,
  "rotary embedding": (config) => rotationOf(config.rope, config),
  "rotary embedding of layers with a window": (config) =>
    config.slidingWindows.some((window) => window !== undefined)
      ? rotationOf(config.localRope ?? config.rope, config)
      : undefined,
  "layers without rotation": ({ layersWithoutRope, numLayers }) =>
    layersWithoutRope ?? Array.from({ length: numLayers }, () => false),
  experts: ({ experts }) => experts,
};

/** Without the layout of q's and k's rows, in which files may differ. */
function rotationOf({ theta, rotaryDim, scaling }: RopeConfig, config: ModelConfig): unknown {
  if (scaling.kind === "llama3") {
    return { theta, rotaryDim, scaling: { kind: "factors", factors: llama3Factors(config) } };
  }
  return { theta, rotaryDim, scaling };
}

/**
 * @param read - what a reader of the file would take the model for
 * @throws OctavoError `artifact_unsupported`, naming the first setting that is not the model's
 */
export function refuseWhatIsLost(path: string, kind: string, config: ModelConfig, read: ModelConfig): void {
  for (const [name, of] of Object.entries(settings)) {
    const [expected, found] = [of(config), of(read)];
    if (isSame(expected, found)) continue;
    throw artifactUnsupported(
      path,
      `has another ${name} (${shown(expected)}) than GGUF files of the ${kind} architecture can say (${shown(found)})`,
    );
  }
}

/** Equal but for rounding to single precision. */
function isSame(a: unknown, b: unknown): boolean {
  if (typeof a === "number" && typeof b === "number") {
    return Object.is(a, b) || Math.abs(a - b) <= 1e-6 * Math.max(Math.abs(a), Math.abs(b));
  }
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return Object.is(a, b);
  const entries = new Map<string, unknown>(Object.entries(a));
  const others = new Map<string, unknown>(Object.entries(b));
  return [...new Set([...entries.keys(), ...others.keys()])].every((key) =>
    isSame(entries.get(key), others.get(key)),
  );
}

function shown(value: unknown): string {
  return (JSON.stringify(value) ?? "none").slice(0, 120);
}
