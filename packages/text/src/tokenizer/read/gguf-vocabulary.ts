import { OctavoError } from "@octavo/protocol/errors";
import { GgufStrings, packStrings } from "../../files/gguf-strings.js";
import { maxMergeRules } from "../models/merge.js";
import type {
  AddedTokenSpecification,
  DecoderSpecification,
  ModelSpecification,
  NormalizerSpecification,
  PostProcessorSpecification,
  PreTokenizerSpecification,
  ReadTokenizer,
  TokenizerSpecification,
} from "../specification.js";
import { TokenTable, type Vocabulary } from "../token-table.js";
import { ggufPreTokenizer } from "./gguf-pre-tokenizers.js";
import { bertNormalizer, bertPreTokenizer } from "./pipeline-json.js";
import { vocabularyLimit, writeMerge } from "./model-json.js";

type Metadata = ReadonlyMap<string, unknown>;

const prefix = "tokenizer.ggml.";
const metaspace = "\u2581";
const space = 0x20;

/** Values of `tokenizer.ggml.token_type`. */
const tokenType = { normal: 1, unknown: 2, control: 3, userDefined: 4, unused: 5, byte: 6 } as const;

/**
 * Reads the vocabulary in a GGUF file's metadata as llama.cpp understands it: `gpt2` (byte-level BPE), `llama`
 * (SentencePiece BPE by scores), `t5` (Unigram) and `bert` (WordPiece). Throws `artifact_invalid` or `artifact_unsupported`.
 */
export function readGgufVocabulary(metadata: Metadata): ReadTokenizer {
  const kind = metadata.get(`${prefix}model`);
  switch (kind) {
    case "gpt2":
      return readByteLevel(metadata);
    case "llama":
      return readSentencePiece(metadata);
    case "t5":
      return readUnigram(metadata);
    case "bert":
      return readWordPiece(metadata);
    default:
      throw new OctavoError(
        "artifact_unsupported",
        `${prefix}model is ${JSON.stringify(kind) ?? "missing"}; supported vocabularies are bert, gpt2, llama and t5.`,
      );
  }
}

function readByteLevel(metadata: Metadata): ReadTokenizer {
  const name = metadata.get(`${prefix}pre`) ?? "default";
  const pre = typeof name === "string" ? ggufPreTokenizer(name) : undefined;
  if (pre === undefined) {
    throw new OctavoError(
      "artifact_unsupported",
      `${prefix}pre is ${JSON.stringify(name)}, a way to cut text that is not known.`,
    );
  }
  const { vocabulary, table, addedTokens } = readTokens(metadata);
  const splits = pre.patterns.map((regex): PreTokenizerSpecification => ({
    kind: "split",
    pattern: { regex },
    behavior: "isolated",
    invert: false,
  }));
  const specification: TokenizerSpecification = {
    vocabulary,
    addedTokens,
    model: {
      kind: "bpe",
      merges: readMerges(metadata, table),
      unknownId: undefined,
      fuseUnknown: false,
      byteFallback: false,
      ignoreMerges: pre.ignoreMerges,
      continuingSubwordPrefix: "",
      endOfWordSuffix: "",
    },
    normalizer: undefined,
    preTokenizer: {
      kind: "sequence",
      items: [...splits, { kind: "byte-level", addPrefixSpace: false, useRegex: false }],
    },
    decoder: { kind: "byte-level" },
    ...readEnds(metadata, table.size, {
      addBos: pre.addBos,
      addEos: false,
      bos: undefined,
      eos: undefined,
    }),
  };
  return { specification, table };
}

function readSentencePiece(metadata: Metadata): ReadTokenizer {
  const { vocabulary, table, addedTokens } = readTokens(metadata);
  const addsSpace = readBoolean(metadata, "add_space_prefix") ?? true;
  const escape: NormalizerSpecification = { kind: "replace", pattern: { literal: " " }, content: metaspace };
  const strip: DecoderSpecification[] = addsSpace ? [{ kind: "strip", content: " ", start: 1, stop: 0 }] : [];
  const model: ModelSpecification = {
    kind: "scored-bpe",
    scores: readScores(metadata, table.size),
    unknownId: readId(metadata, "unknown_token_id", table.size) ?? 0,
  };
  const specification: TokenizerSpecification = {
    vocabulary,
    addedTokens,
    model,
    normalizer: addsSpace
      ? { kind: "sequence", items: [{ kind: "prepend", text: metaspace }, escape] }
      : escape,
    preTokenizer: undefined,
    decoder: {
      kind: "sequence",
      items: [
        { kind: "replace", pattern: { literal: metaspace }, content: " " },
        { kind: "byte-fallback" },
        { kind: "fuse" },
        ...strip,
      ],
    },
    ...readEnds(metadata, table.size, { addBos: true, addEos: false, bos: 1, eos: 2 }),
  };
  return { specification, table };
}

function readUnigram(metadata: Metadata): ReadTokenizer {
  const { vocabulary, table, addedTokens } = readTokens(metadata);
  const addsSpace = readBoolean(metadata, "add_space_prefix") ?? false;
  const charsMap = readBytes(metadata, "precompiled_charsmap");
  const normalizers: NormalizerSpecification[] = [];
  if (charsMap !== undefined) normalizers.push({ kind: "precompiled", charsMap, by: "longest-match" });
  if (readBoolean(metadata, "remove_extra_whitespaces") === true) {
    normalizers.push(
      { kind: "replace", pattern: { regex: "\\A +| +\\z" }, content: "" },
      { kind: "replace", pattern: { regex: " {2,}" }, content: " " },
    );
  }
  if (addsSpace) normalizers.push({ kind: "prepend", text: metaspace });
  const specification: TokenizerSpecification = {
    vocabulary,
    addedTokens,
    model: {
      kind: "unigram",
      scores: readScores(metadata, table.size),
      unknownId: readId(metadata, "unknown_token_id", table.size) ?? 2,
      byteFallback: false,
    },
    normalizer: normalizers.length === 0 ? undefined : { kind: "sequence", items: normalizers },
    preTokenizer: { kind: "metaspace", replacement: metaspace, prepend: "never", split: true },
    decoder: { kind: "metaspace", replacement: metaspace, prepend: addsSpace ? "always" : "never" },
    ...readEnds(metadata, table.size, { addBos: false, addEos: true, bos: undefined, eos: 1 }),
  };
  return { specification, table };
}

/**
 * llama.cpp's converter marks the tokens that begin words; here, as in BERT's own files, those that go on are marked. A vocabulary with
 * capitals keeps them, as its model was trained; llama.cpp lowers all text.
 */
function readWordPiece(metadata: Metadata): ReadTokenizer {
  const read = readTokens(metadata);
  const specials = new Set(read.addedTokens.map(({ id }) => id));
  const tokens = Array.from({ length: read.table.size }, (_, id) => read.table.token(id) ?? "");
  const isCased = tokens.some((token, id) => !specials.has(id) && /^\u2581[A-Z][a-z]/.test(token));
  const { vocabulary, table } = tableOf(
    GgufStrings.of(
      tokens.map((token, id) => {
        if (specials.has(id)) return token;
        return token.startsWith(metaspace) ? token.slice(metaspace.length) : `##${token}`;
      }),
    ),
  );
  const need = (keys: readonly string[]): number => {
    const found = keys.map((key) => readId(metadata, key, table.size)).find((id) => id !== undefined);
    if (found === undefined) throw invalid(keys[0]!, "is missing");
    return found;
  };
  const before = [need(["cls_token_id", "bos_token_id"])];
  // The first spelling is the converter's.
  const after = [need(["seperator_token_id", "separator_token_id", "eos_token_id"])];
  const specification: TokenizerSpecification = {
    vocabulary,
    addedTokens: read.addedTokens,
    model: {
      kind: "word-piece",
      unknownId: need(["unknown_token_id"]),
      continuingSubwordPrefix: "##",
      maxCharacters: 100,
    },
    normalizer: bertNormalizer({ lowercase: !isCased }),
    preTokenizer: bertPreTokenizer,
    decoder: { kind: "word-piece", prefix: "##", cleansUp: true },
    postProcessor: { before, after, pair: { before, between: after, after, hasTypes: true } },
    bosTokenId: before[0],
    eosTokenId: after[0],
  };
  return { specification, table };
}

interface Tokens {
  readonly vocabulary: Vocabulary;
  readonly table: TokenTable;
  readonly addedTokens: readonly AddedTokenSpecification[];
}

/** Control, user-defined and unknown tokens are found in text as wholes; control and unknown ones are special. */
function readTokens(metadata: Metadata): Tokens {
  const strings = metadata.get(`${prefix}tokens`);
  if (!(strings instanceof GgufStrings) || strings.length === 0)
    throw invalid("tokens", "must be a list of strings");
  if (strings.length > vocabularyLimit)
    throw invalid("tokens", `has ${strings.length} entries; at most ${vocabularyLimit} are accepted`);
  const types = readNumbers(metadata, "token_type", strings.length);
  const { vocabulary, table } = tableOf(strings);
  if (table.twice !== undefined) {
    const [first, second] = table.twice;
    throw invalid("tokens", `has ${JSON.stringify(table.token(first))} twice, at ${first} and ${second}`);
  }
  const addedTokens: AddedTokenSpecification[] = [];
  for (let id = 0; id < table.size; id++) {
    const type = types?.[id] ?? tokenType.normal;
    if (type !== tokenType.control && type !== tokenType.userDefined && type !== tokenType.unknown) continue;
    addedTokens.push({
      id,
      content: table.token(id) ?? "",
      special: type !== tokenType.userDefined,
      singleWord: false,
      stripLeft: false,
      stripRight: false,
      normalized: false,
    });
  }
  return { vocabulary, table, addedTokens };
}

/** Empty tokens get a name, as llama.cpp gives it. */
function tableOf(strings: GgufStrings): Pick<Tokens, "vocabulary" | "table"> {
  const used = new Uint8Array(strings.length).fill(1);
  let vocabulary = { ...strings.pack(), used };
  let table = new TokenTable(vocabulary);
  if (table.idOf("") !== undefined) {
    const named = Array.from(strings, (token, id) => token || `[EMPTY_${id}]`);
    vocabulary = { ...packStrings(named), used };
    table = new TokenTable(vocabulary);
  }
  return { vocabulary, table };
}

function readMerges(metadata: Metadata, table: TokenTable): Int32Array {
  const strings = metadata.get(`${prefix}merges`);
  if (!(strings instanceof GgufStrings)) throw invalid("merges", "must be a list of strings");
  if (strings.length >= maxMergeRules)
    throw invalid("merges", `has ${strings.length} entries; fewer than ${maxMergeRules} are accepted`);
  const { bytes, starts, gap } = strings.pack();
  const count = starts.length - 1;
  const triples = new Int32Array(count * 3);
  let merged = -1;
  for (let rank = 0; rank < count; rank++) {
    const start = starts[rank]!;
    const end = starts[rank + 1]! - gap;
    let cut = start + 1;
    while (cut < end && bytes[cut] !== space) cut++;
    if (cut >= end) throw invalid("merges", `has no pair of tokens at ${rank}`);
    const left = table.find(bytes, start, cut);
    const right = table.find(bytes, cut + 1, end);
    // Vocabularies list merged tokens in the order of their merges, so that the next token is nearly always the one meant.
    merged = table.findJoined(bytes, start, cut, end, merged + 1);
    if (left < 0 || right < 0 || merged < 0) {
      const text = (from: number, to: number): string => Buffer.from(bytes.subarray(from, to)).toString();
      writeMerge(triples, rank, text(start, cut), text(cut + 1, end), table, 0, `${prefix}merges`);
    }
    triples[rank * 3] = left;
    triples[rank * 3 + 1] = right;
    triples[rank * 3 + 2] = merged;
  }
  return triples;
}

function readScores(metadata: Metadata, count: number): Float64Array {
  const scores = readNumbers(metadata, "scores", count);
  if (scores === undefined) throw invalid("scores", "is missing");
  const result = Float64Array.from({ length: count }, (_, id) => scores[id]!);
  if (result.some((score) => Number.isNaN(score)))
    throw invalid("scores", "has an entry that is not a number");
  return result;
}

interface EndDefaults {
  readonly addBos: boolean;
  readonly addEos: boolean;
  readonly bos: number | undefined;
  readonly eos: number | undefined;
}

function readEnds(
  metadata: Metadata,
  count: number,
  defaults: EndDefaults,
): {
  postProcessor: PostProcessorSpecification;
  bosTokenId: number | undefined;
  eosTokenId: number | undefined;
} {
  const within = (id: number | undefined): number | undefined =>
    id !== undefined && id < count ? id : undefined;
  const bosTokenId = readId(metadata, "bos_token_id", count) ?? within(defaults.bos);
  const eosTokenId = readId(metadata, "eos_token_id", count) ?? within(defaults.eos);
  const addBos = readBoolean(metadata, "add_bos_token") ?? defaults.addBos;
  const addEos = readBoolean(metadata, "add_eos_token") ?? defaults.addEos;
  return {
    postProcessor: {
      before: addBos && bosTokenId !== undefined ? [bosTokenId] : [],
      after: addEos && eosTokenId !== undefined ? [eosTokenId] : [],
    },
    bosTokenId,
    eosTokenId,
  };
}

function readBoolean(metadata: Metadata, key: string): boolean | undefined {
  const value = metadata.get(prefix + key);
  if (value === undefined || typeof value === "boolean") return value;
  throw invalid(key, "must be true or false");
}

function readId(metadata: Metadata, key: string, count: number): number | undefined {
  const value = metadata.get(prefix + key);
  if (value === undefined) return undefined;
  // converters write the largest uint32 for "none"
  if (value === 0xffffffff || value === -1) return undefined;
  if (typeof value !== "number" || !Number.isInteger(value) || value < 0 || value >= count) {
    throw invalid(key, `must be an id below ${count}`);
  }
  return value;
}

function readNumbers(metadata: Metadata, key: string, count: number): ArrayLike<number> | undefined {
  const value = metadata.get(prefix + key);
  if (value === undefined) return undefined;
  const isList = Array.isArray(value) || (ArrayBuffer.isView(value) && !(value instanceof DataView));
  const list = value as ArrayLike<unknown>;
  if (!isList || list.length < count || typeof list[0] !== "number")
    throw invalid(key, `must be a list of at least ${count} numbers`);
  return list as ArrayLike<number>;
}

function readBytes(metadata: Metadata, key: string): Uint8Array | undefined {
  const value = metadata.get(prefix + key);
  if (value === undefined) return undefined;
  if (value instanceof Uint8Array || value instanceof Int8Array) return new Uint8Array(value);
  if (Array.isArray(value)) return Uint8Array.from(value as number[]);
  throw invalid(key, "must be a list of bytes");
}

function invalid(key: string, what: string): OctavoError {
  return new OctavoError("artifact_invalid", `${prefix}${key} ${what}.`);
}
