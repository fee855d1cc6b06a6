import { artifactInvalid } from "@octavo/text/files/artifact-file";
import type { TokenizerFileConfig, TokenizerSource } from "@octavo/text/tokenizer/source";
import type { GgufMetadata } from "./file.js";
import { GgufStrings } from "@octavo/text/files/gguf-strings";
import { GgufValues } from "./values.js";

/** A GGUF file's own vocabulary and templates. Metadata keeps GGUF's keys (`tokenizer.ggml.*`). */
export function readGgufTokenizer(path: string, metadata: GgufMetadata): TokenizerSource {
  const tokens = metadata.get("tokenizer.ggml.tokens");
  if (!(tokens instanceof GgufStrings) || tokens.length === 0)
    throw artifactInvalid(path, "has no tokenizer.ggml.tokens");
  const values = new GgufValues(path, metadata, "tokenizer.ggml");
  const token = (key: string): string | undefined => {
    const id = values.number(key);
    return id === undefined ? undefined : tokens.at(id);
  };
  const templates = new GgufValues(path, metadata, "tokenizer");
  const named = new Map<string, string>();
  for (const [key, value] of metadata) {
    if (key.startsWith("tokenizer.chat_template.") && typeof value === "string") {
      named.set(key.slice("tokenizer.chat_template.".length), value);
    }
  }
  const config: TokenizerFileConfig = {
    bosToken: token("bos_token_id"),
    eosToken: token("eos_token_id"),
    unkToken: token("unknown_token_id"),
    padToken: token("padding_token_id"),
    chatTemplate: templates.string("chat_template"),
    namedChatTemplates: named,
  };
  return { kind: "gguf", metadata, config };
}
