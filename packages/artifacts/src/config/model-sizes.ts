import type { ModelConfig, RopeScaling } from "../program/model-config.js";
import { artifactInvalid } from "@octavo/text/files/artifact-file";

/** @throws OctavoError `artifact_invalid` naming the file's field */
export function positive(path: string, field: string, value: number): number {
  if (value > 0 && Number.isFinite(value)) return value;
  throw artifactInvalid(path, `has ${field} ${value}; a positive number is needed`);
}

export const largestVocabulary = 4_194_304;

/** Every how many layers one has full attention, as a number or as letters that stand for the layers of one run. */
export function patternLength(
  {
    sliding_window_pattern: pattern,
  }: { readonly sliding_window_pattern?: number | string | null | undefined },
  absent: number,
): number {
  return typeof pattern === "string" ? pattern.length : (pattern ?? absent);
}

/** Far above any published model; a file that claims more is broken or hostile. */
const sizeBounds = {
  vocabSize: largestVocabulary,
  hiddenSize: 262_144,
  intermediateSize: 1_048_576,
  numLayers: 1_024,
  numHeads: 1_024,
  numKvHeads: 1_024,
  headDim: 1_024,
  maxPositionEmbeddings: 1_073_741_824,
} as const satisfies Partial<Record<keyof ModelConfig, number>>;

/**
 * The last check of a config of any format: sizes within bounds and consistent.
 * @throws OctavoError `artifact_invalid`, naming the field as ModelConfig does
 */
export function checkModelConfig(path: string, config: ModelConfig): ModelConfig {
  for (const [field, bound] of Object.entries(sizeBounds)) {
    const value = config[field as keyof typeof sizeBounds];
    if (!Number.isSafeInteger(value) || value < 1 || value > bound) {
      throw artifactInvalid(path, `has ${field} ${value}; a whole number from 1 to ${bound} is needed`);
    }
  }
  const { numHeads, numKvHeads, headDim, rope } = config;
  if (numHeads % numKvHeads !== 0) {
    throw artifactInvalid(path, `has ${numHeads} heads, which ${numKvHeads} key-value heads do not divide`);
  }
  checkLayers(path, config);
  if (headDim % 2 !== 0) throw artifactInvalid(path, `has the odd head size ${headDim}`);
  if (
    !Number.isInteger(rope.rotaryDim) ||
    rope.rotaryDim < 2 ||
    rope.rotaryDim > (config.globalHeads?.headDim ?? headDim) ||
    rope.rotaryDim % 2 !== 0
  ) {
    throw artifactInvalid(
      path,
      `rotates ${rope.rotaryDim} of ${headDim} head elements; an even part is needed`,
    );
  }
  if (!(config.rmsNormEps > 0 && config.rmsNormEps < 1)) {
    throw artifactInvalid(path, `has the norm epsilon ${config.rmsNormEps}; it must lie between 0 and 1`);
  }
  for (const { theta } of [rope, config.localRope ?? rope]) {
    // From 1 down, frequencies do not fall, and soon exceed what f32 holds.
    if (!(theta > 1 && Number.isFinite(theta)))
      throw artifactInvalid(path, `has the rope base ${theta}; a number above 1 is needed`);
  }
  checkScaling(path, rope.scaling, rope.rotaryDim);
  if (config.localRope !== undefined)
    checkScaling(path, config.localRope.scaling, config.localRope.rotaryDim);
  if (config.layersWithoutRope !== undefined && config.layersWithoutRope.length !== config.numLayers) {
    throw artifactInvalid(
      path,
      `says of ${config.layersWithoutRope.length} layers whether they rotate, but has ${config.numLayers}`,
    );
  }
  const { recurrence } = config;
  if (recurrence !== undefined && recurrence.layers.length !== config.numLayers) {
    throw artifactInvalid(
      path,
      `gives ${recurrence.layers.length} layer types for ${config.numLayers} layers`,
    );
  }
  if (recurrence?.layers.includes(false) === false)
    throw artifactInvalid(path, "has no layer with attention, which Octavo's cache is built around");
  if (config.slidingWindows.length !== config.numLayers) {
    throw artifactInvalid(
      path,
      `gives ${config.slidingWindows.length} layer types for ${config.numLayers} layers`,
    );
  }
  for (const id of [config.bosTokenId ?? 0, ...config.eosTokenIds]) {
    // GGUF files write -1 as 32 bits without a sign.
    if (id < -1 || (id >= largestVocabulary && id !== 0xffff_ffff))
      throw artifactInvalid(path, `has the token id ${id} for begin or end; no vocabulary is as large`);
  }
  const inVocabulary = (id: number): boolean => Number.isSafeInteger(id) && id >= 0 && id < config.vocabSize;
  const { bosTokenId } = config;
  return {
    ...config,
    // Placeholders such as -1, and ids beyond the vocabulary, name no token.
    bosTokenId: bosTokenId !== undefined && inVocabulary(bosTokenId) ? bosTokenId : undefined,
    eosTokenIds: [...new Set(config.eosTokenIds)].filter(inVocabulary),
  };
}

/** Of models whose layers differ. */
function checkLayers(path: string, config: ModelConfig): void {
  const {
    numHeads,
    numLayers,
    globalHeads,
    numSharedKvLayers = 0,
    slidingWindows,
    intermediateSizes,
  } = config;
  if (globalHeads !== undefined) {
    const { numKvHeads, headDim } = globalHeads;
    if (!isSize(numKvHeads, sizeBounds.numKvHeads) || numHeads % numKvHeads !== 0)
      throw artifactInvalid(
        path,
        `has ${numHeads} heads, which ${numKvHeads} key-value heads of layers without a window do not divide`,
      );
    if (!isSize(headDim, sizeBounds.headDim) || headDim % 2 !== 0)
      throw artifactInvalid(
        path,
        `has heads of ${headDim} in layers without a window; an even number up to ${sizeBounds.headDim} is needed`,
      );
  }
  const firstShared = numLayers - numSharedKvLayers;
  const isKept = (window: number | undefined): boolean =>
    slidingWindows.slice(0, firstShared).some((own) => (own === undefined) === (window === undefined));
  if (numSharedKvLayers !== 0 && (!isSize(numSharedKvLayers, numLayers - 1) || !slidingWindows.every(isKept)))
    throw artifactInvalid(
      path,
      `has ${numSharedKvLayers} of ${numLayers} layers that share keys and values; before them, one of each kind is needed that has its own`,
    );
  if (intermediateSizes?.every((size) => isSize(size, sizeBounds.intermediateSize)) === false)
    throw artifactInvalid(path, "has an MLP of no usable width");
  const { size = 1, vocabSize = 1 } = config.perLayerInput ?? {};
  if (!isSize(size, sizeBounds.hiddenSize) || !isSize(vocabSize, largestVocabulary))
    throw artifactInvalid(path, `has embeddings for each layer of the shape [${vocabSize}, ${size}]`);
}

function isSize(value: number, bound: number): boolean {
  return Number.isSafeInteger(value) && value >= 1 && value <= bound;
}

function checkScaling(path: string, scaling: RopeScaling, rotaryDim: number): void {
  if (scaling.kind === "none") return;
  if (scaling.kind === "factors" || scaling.kind === "longrope") {
    for (const factors of scaling.kind === "factors" ? [scaling.factors] : [scaling.short, scaling.long]) {
      checkFactors(path, factors, rotaryDim / 2);
    }
    const attentionFactor = scaling.kind === "factors" ? 1 : scaling.attentionFactor;
    if (!(attentionFactor > 0 && Number.isFinite(attentionFactor))) {
      throw artifactInvalid(path, `has the rope attention factor ${attentionFactor}`);
    }
    return;
  }
  for (const [name, value] of Object.entries(scaling)) {
    if (typeof value === "number" && !(Number.isFinite(value) && value >= 0)) {
      throw artifactInvalid(path, `has the rope scaling ${name} ${value}`);
    }
  }
  if (scaling.kind === "proportional" && !(scaling.share > 0 && scaling.share <= 1))
    throw artifactInvalid(path, `rotates a share of ${scaling.share} of each head`);
  if (!(scaling.factor > 0)) throw artifactInvalid(path, `has the rope scaling factor ${scaling.factor}`);
}

function checkFactors(path: string, factors: Float32Array, count: number): void {
  if (factors.length !== count) {
    throw artifactInvalid(path, `has ${factors.length} rope factors for ${count} frequencies`);
  }
  if (!factors.every((factor) => Number.isFinite(factor) && factor > 0)) {
    throw artifactInvalid(path, "has a rope factor that is not a positive number");
  }
}

/**
 * Positions that a model can be served with. Linear and dynamic scaling leave the unscaled length in the configuration, YaRN
 * may; Llama 3.1's holds the scaled one. vLLM's rule (`_get_and_verify_max_len`).
 */
export function usablePositions(maxPositions: number, scaling: RopeScaling): number {
  switch (scaling.kind) {
    case "linear":
    case "dynamic":
      return Math.max(maxPositions, Math.trunc(maxPositions * scaling.factor));
    case "yarn":
      return Math.max(maxPositions, Math.trunc(scaling.originalMaxPositions * scaling.factor));
    case "none":
    case "llama3":
    case "proportional":
    case "factors":
    case "longrope":
      return maxPositions;
  }
}
