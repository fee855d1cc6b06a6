/** How artifacts lie on disk, for packages that write or measure them without running an engine. */
export { convertFloats, halfBits, singleBitsOfHalf } from "./models/float-conversion.js";
export type { MatrixPlan, ModelPlan, PlannedOp, VectorPlan } from "./models/model-plan.js";
export { planModel, supportedArchitectures } from "./models/registry.js";
export { ggufPreTokenizerName } from "./tokenizer/read/gguf-pre-tokenizers.js";
export { artifactInvalid, artifactUnsupported } from "./weights/artifact-file.js";
export { readJsonFile } from "./weights/bounded-json.js";
export type { RopeFactors } from "./weights/gguf-config.js";
export {
  fittingGgufType,
  ggmlLayoutOf,
  type GgufMix,
  ggufMixes,
  type GgufMixType,
  type MixedMatrix,
} from "./weights/gguf-mixes.js";
export { ggufPlace, type LayerNames, ropeFactorNames } from "./weights/gguf-names.js";
export { GgufStrings } from "./weights/gguf-strings.js";
export { type GgufToBe, readGgufToBe } from "./weights/gguf-reading.js";
export { readTensor } from "./weights/read-tensor.js";
export { tensorSlices } from "./weights/tensor-slices.js";
export { type FloatType, isFloatType } from "./weights/tensor-storage.js";
export {
  encodeGgufHeader,
  type GgufHeaderFields,
  type GgufTensorEntry,
  type GgufValue,
} from "./weights/write-gguf-header.js";
