import { OctavoError } from "@octavo/protocol";
import type { TokenizerSource } from "../weights/checkpoint.js";
import { readTokenizerJson } from "./read/tokenizer-json.js";
import { TextTokenizer } from "./text-tokenizer.js";
import type { Tokenizer } from "./tokenizer.js";

/**
 * Builds a checkpoint's tokenizer. Throws `artifact_invalid` for malformed files and `artifact_unsupported` for
 * models, steps and patterns that are not implemented, naming the place in the file.
 */
export function createTokenizer(source: TokenizerSource): Tokenizer {
  if (source.kind === "gguf")
    throw new OctavoError("artifact_unsupported", "GGUF vocabularies are not read yet.");
  return new TextTokenizer(readTokenizerJson(source.json, source.config));
}
