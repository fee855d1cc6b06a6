export { dequantize } from "./dequantize.js";
export { fromBfloat16, fromHalf, toBfloat16, toHalf } from "./float-bits.js";
export { quantize, type StoredType } from "./quantize.js";
export { Random } from "./random.js";
export {
  tinyConfigJson,
  tinyGgufMetadata,
  tinyGgufTensors,
  tinyModel,
  tinyTensors,
  writeTinyFolder,
  writeTinyGguf,
  type TinyModel,
} from "./tiny-checkpoint.js";
export { byteLevelTokens, tinyTokenizerConfig, tinyTokenizerJson, tinyVocabSize } from "./tiny-tokenizer.js";
export { encodeGguf, writeGguf, type GgufToWrite, type GgufValue } from "./write-gguf.js";
export {
  encodeSafetensors,
  joinSafetensors,
  writeSafetensors,
  type TensorToWrite,
} from "./write-safetensors.js";
