import { artifactUnsupported } from "@octavo/text/files/artifact-file";
import { ggufPreTokenizerName } from "@octavo/text/tokenizer/read/gguf-pre-tokenizers";
import { type GgufValue } from "@octavo/artifacts/gguf/write-header";
import type { Checkpoint } from "@octavo/engine";
import { createTokenizer } from "@octavo/engine/parts";

/** Values of `tokenizer.ggml.token_type`. */
const tokenType = { normal: 1, unknown: 2, control: 3, userDefined: 4, unused: 5, byte: 6 } as const;

/** tokenizer.json as far as GGUF holds it; the engine's own reader has checked it before. */
interface TokenizerJson {
  readonly added_tokens?: readonly {
    readonly id: number;
    readonly content: string;
    readonly special: boolean;
  }[];
  readonly normalizer?: Part | null;
  readonly pre_tokenizer?: Part | null;
  readonly model: {
    readonly type?: string;
    readonly vocab: Readonly<Record<string, number>>;
    readonly merges?: readonly (string | readonly [string, string])[];
    readonly byte_fallback?: boolean;
    readonly ignore_merges?: boolean;
    readonly unk_token?: string | null;
  };
}

interface Part {
  readonly type: string;
  readonly pretokenizers?: readonly Part[];
  readonly normalizers?: readonly Part[];
  readonly pattern?: { readonly Regex?: string; readonly String?: string };
  readonly behavior?: string;
  readonly use_regex?: boolean;
  readonly individual_digits?: boolean;
}

/** GPT-2's pre-tokenizer pattern, ByteLevel's default. */
const byteLevelPattern = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

/**
 * A BPE vocabulary as GGUF holds it: `gpt2` for byte-level ones, `llama` for SentencePiece's with byte fallback.
 * @throws OctavoError `artifact_unsupported` for other vocabularies, and for a way to cut text that GGUF has no name for
 */
export function tokenizerMetadata(checkpoint: Checkpoint): Record<string, GgufValue> {
  const { tokenizer, path, config } = checkpoint;
  if (tokenizer.kind !== "tokenizer.json") throw artifactUnsupported(path, "has no tokenizer.json");
  const json = tokenizer.json as TokenizerJson;
  const { model } = json;
  if (model.merges === undefined) {
    throw artifactUnsupported(
      path,
      `has a ${model.type ?? "nameless"} tokenizer; GGUF files are written for BPE`,
    );
  }
  const { tokens, types } = listTokens(json, config.vocabSize);
  const idOf = new Map(tokens.map((token, id) => [token, id]));
  const sentencePiece = model.byte_fallback === true;
  const encoded = createTokenizer(tokenizer).encode("a");
  const { bosToken, eosToken, unkToken, padToken, chatTemplate, namedChatTemplates } = tokenizer.config;
  const bosId = bosToken === undefined ? undefined : idOf.get(bosToken);
  const eosId = eosToken === undefined ? config.eosTokenIds[0] : idOf.get(eosToken);
  const addBos = bosId !== undefined && encoded[0] === bosId;
  const metadata: Record<string, GgufValue> = {
    "tokenizer.ggml.model": { type: "string", value: sentencePiece ? "llama" : "gpt2" },
    "tokenizer.ggml.pre": {
      type: "string",
      value: sentencePiece ? "default" : preTokenizerName(path, json, addBos),
    },
    "tokenizer.ggml.tokens": { type: "array", of: "string", value: tokens },
    "tokenizer.ggml.token_type": { type: "array", of: "i32", value: types },
  };
  if (sentencePiece) {
    metadata["tokenizer.ggml.scores"] = {
      type: "array",
      of: "f32",
      value: scoresOf(model.merges, tokens, idOf),
    };
    metadata["tokenizer.ggml.add_space_prefix"] = { type: "bool", value: prependsSpace(json) };
  } else {
    metadata["tokenizer.ggml.merges"] = { type: "array", of: "string", value: model.merges.map(mergeText) };
  }
  const ids = {
    bos_token_id: bosId,
    eos_token_id: eosId,
    unknown_token_id: unkToken === undefined ? undefined : idOf.get(unkToken),
    padding_token_id: padToken === undefined ? undefined : idOf.get(padToken),
  };
  for (const [key, id] of Object.entries(ids)) {
    if (id !== undefined) metadata[`tokenizer.ggml.${key}`] = { type: "u32", value: id };
  }
  metadata["tokenizer.ggml.add_bos_token"] = { type: "bool", value: addBos };
  metadata["tokenizer.ggml.add_eos_token"] = {
    type: "bool",
    value: eosId !== undefined && encoded.at(-1) === eosId,
  };
  if (chatTemplate !== undefined)
    metadata["tokenizer.chat_template"] = { type: "string", value: chatTemplate };
  for (const [name, template] of namedChatTemplates) {
    metadata[`tokenizer.chat_template.${name}`] = { type: "string", value: template };
  }
  return metadata;
}

/** Every id of the embedding has a token: those without one are called after their id, as llama.cpp's converter does. */
function listTokens(json: TokenizerJson, vocabSize: number): { tokens: string[]; types: number[] } {
  const tokens = Array.from({ length: vocabSize }, (_, id) => `[PAD${id}]`);
  const types = tokens.map((): number => tokenType.unused);
  const sentencePiece = json.model.byte_fallback === true;
  for (const [token, id] of Object.entries(json.model.vocab)) {
    tokens[id] = token;
    types[id] = sentencePiece && /^<0x[0-9A-F]{2}>$/.test(token) ? tokenType.byte : tokenType.normal;
    if (sentencePiece && token === json.model.unk_token) types[id] = tokenType.unknown;
  }
  for (const { id, content, special } of json.added_tokens ?? []) {
    tokens[id] = content;
    if (types[id] !== tokenType.unknown) types[id] = special ? tokenType.control : tokenType.userDefined;
  }
  return { tokens, types };
}

function mergeText(merge: string | readonly [string, string]): string {
  return typeof merge === "string" ? merge : `${merge[0]} ${merge[1]}`;
}

/** SentencePiece merges the pair of highest score first: earlier merges score higher. */
function scoresOf(
  merges: readonly (string | readonly [string, string])[],
  tokens: readonly string[],
  idOf: ReadonlyMap<string, number>,
): number[] {
  const scores = Array.from(tokens, () => -1e6);
  for (const [rank, merge] of merges.entries()) {
    const [left = "", right = ""] = typeof merge === "string" ? merge.split(" ") : merge;
    const id = idOf.get(left + right);
    if (id !== undefined && scores[id] === -1e6) scores[id] = -rank;
  }
  return scores;
}

function prependsSpace({ normalizer }: TokenizerJson): boolean {
  const parts = normalizer?.normalizers ?? (normalizer ? [normalizer] : []);
  return parts.some((part) => part.type === "Prepend");
}

function preTokenizerName(path: string, json: TokenizerJson, addBos: boolean): string {
  const parts = json.pre_tokenizer?.pretokenizers ?? (json.pre_tokenizer ? [json.pre_tokenizer] : []);
  const patterns = parts.flatMap((part) => {
    if (part.type === "Split" && part.pattern?.Regex !== undefined) return [part.pattern.Regex];
    if (part.type === "Digits") return [part.individual_digits === true ? "\\p{N}" : "\\p{N}+"];
    if (part.type === "ByteLevel") return part.use_regex === false ? [] : [byteLevelPattern];
    return [`${part.type} has no pattern`];
  });
  const flags = { ignoreMerges: json.model.ignore_merges === true, addBos };
  const name = ggufPreTokenizerName(patterns, flags);
  if (name === undefined) {
    throw artifactUnsupported(
      path,
      `cuts text by ${JSON.stringify(patterns.join(" then ").slice(0, 300))}, which GGUF files have no name for`,
    );
  }
  return name;
}
