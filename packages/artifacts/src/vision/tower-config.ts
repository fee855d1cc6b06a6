import type { ModelConfig } from "../program/model-config.js";

interface TowerShape {
  readonly hiddenSize: number;
  readonly intermediateSize: number;
  readonly numLayers: number;
  readonly numHeads: number;
  readonly normEps: number;
  /** Most patches that it sees at a time. */
  readonly maxPatches: number;
}

/** What a tower's layers are, in a decoder's words. */
export function towerConfig(tower: TowerShape, text: ModelConfig): ModelConfig {
  const { hiddenSize, intermediateSize, numLayers, numHeads, normEps, maxPatches } = tower;
  const { normWeightOffset: _, normKind: __, ...rest } = text;
  return {
    ...rest,
    architecture: "the vision tower",
    hiddenSize,
    intermediateSize,
    numLayers,
    numHeads,
    numKvHeads: numHeads,
    headDim: hiddenSize / numHeads,
    rmsNormEps: normEps,
    maxPositionEmbeddings: maxPatches,
    slidingWindows: [],
  };
}
