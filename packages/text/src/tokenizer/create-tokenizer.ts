import type { TokenizerSource } from "./source.js";
import { readGgufVocabulary } from "./read/gguf-vocabulary.js";
import { readTokenizerJson } from "./read/tokenizer-json.js";
import { TextTokenizer } from "./text-tokenizer.js";
import type { Tokenizer } from "./tokenizer.js";

/**
 * Builds a checkpoint's tokenizer. Throws `artifact_invalid` for malformed files and `artifact_unsupported` for
 * models, steps and patterns that are not implemented, naming the place in the file.
 */
export function createTokenizer(source: TokenizerSource): Tokenizer {
  const { specification, table } =
    source.kind === "gguf"
      ? readGgufVocabulary(source.metadata)
      : readTokenizerJson(source.json, source.config);
  return new TextTokenizer(specification, table);
}
