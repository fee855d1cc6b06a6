import { OctavoError } from "@octavo/protocol/errors";
import { maxMergeRules } from "../models/merge.js";
import {
  packVocabulary,
  type AddedTokenSpecification,
  type DecoderSpecification,
  type ModelSpecification,
  type NormalizerSpecification,
  type PostProcessorSpecification,
  type PreTokenizerSpecification,
  type ReadTokenizer,
  type TokenizerSpecification,
} from "../specification.js";
import { ggufPreTokenizer } from "./gguf-pre-tokenizers.js";
import { vocabularyLimit, writeMerge } from "./model-json.js";

type Metadata = ReadonlyMap<string, unknown>;

const prefix = "tokenizer.ggml.";
const metaspace = "\u2581";

/** Values of `tokenizer.ggml.token_type`. */
const tokenType = { normal: 1, unknown: 2, control: 3, userDefined: 4, unused: 5, byte: 6 } as const;

/**
 * Reads the vocabulary in a GGUF file's metadata as llama.cpp understands it: `gpt2` (byte-level BPE), `llama`
 * (SentencePiece BPE by scores) and `t5` (Unigram). Throws `artifact_invalid` or `artifact_unsupported`.
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
    default:
      throw new OctavoError(
        "artifact_unsupported",
        `${prefix}model is ${JSON.stringify(kind) ?? "missing"}; supported vocabularies are gpt2, llama and t5.`,
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
  const { tokens, idOf, addedTokens } = readTokens(metadata);
  const splits = pre.patterns.map((regex): PreTokenizerSpecification => ({
    kind: "split",
    pattern: { regex },
    behavior: "isolated",
    invert: false,
  }));
  const specification: TokenizerSpecification = {
    vocabulary: packVocabulary(tokens),
    addedTokens,
    model: {
      kind: "bpe",
      merges: readMerges(metadata, tokens, idOf),
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
    ...readEnds(metadata, tokens.length, {
      addBos: pre.addBos,
      addEos: false,
      bos: undefined,
      eos: undefined,
    }),
  };
  return { specification, index: { tokens, idOf } };
}

function readSentencePiece(metadata: Metadata): ReadTokenizer {
  const { tokens, idOf, addedTokens } = readTokens(metadata);
  const addsSpace = readBoolean(metadata, "add_space_prefix") ?? true;
  const escape: NormalizerSpecification = { kind: "replace", pattern: { literal: " " }, content: metaspace };
  const strip: DecoderSpecification[] = addsSpace ? [{ kind: "strip", content: " ", start: 1, stop: 0 }] : [];
  const model: ModelSpecification = {
    kind: "scored-bpe",
    scores: readScores(metadata, tokens.length),
    unknownId: readId(metadata, "unknown_token_id", tokens.length) ?? 0,
  };
  const specification: TokenizerSpecification = {
    vocabulary: packVocabulary(tokens),
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
    ...readEnds(metadata, tokens.length, { addBos: true, addEos: false, bos: 1, eos: 2 }),
  };
  return { specification, index: { tokens, idOf } };
}

function readUnigram(metadata: Metadata): ReadTokenizer {
  const { tokens, idOf, addedTokens } = readTokens(metadata);
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
    vocabulary: packVocabulary(tokens),
    addedTokens,
    model: {
      kind: "unigram",
      scores: readScores(metadata, tokens.length),
      unknownId: readId(metadata, "unknown_token_id", tokens.length) ?? 2,
      byteFallback: false,
    },
    normalizer: normalizers.length === 0 ? undefined : { kind: "sequence", items: normalizers },
    preTokenizer: { kind: "metaspace", replacement: metaspace, prepend: "never", split: true },
    decoder: { kind: "metaspace", replacement: metaspace, prepend: addsSpace ? "always" : "never" },
    ...readEnds(metadata, tokens.length, { addBos: false, addEos: true, bos: undefined, eos: 1 }),
  };
  return { specification, index: { tokens, idOf } };
}

interface Tokens {
  readonly tokens: readonly string[];
  readonly idOf: ReadonlyMap<string, number>;
  readonly addedTokens: readonly AddedTokenSpecification[];
}

/** Control, user-defined and unknown tokens are found in text as wholes; control and unknown ones are special. */
function readTokens(metadata: Metadata): Tokens {
  const value = metadata.get(`${prefix}tokens`);
  if (!Array.isArray(value) || value.length === 0) throw invalid("tokens", "must be a list of strings");
  if (value.length > vocabularyLimit)
    throw invalid("tokens", `has ${value.length} entries; at most ${vocabularyLimit} are accepted`);
  const types = readNumbers(metadata, "token_type", value.length);
  const tokens: string[] = [];
  const idOf = new Map<string, number>();
  const addedTokens: AddedTokenSpecification[] = [];
  for (const [id, entry] of (value as unknown[]).entries()) {
    if (typeof entry !== "string") throw invalid("tokens", `has an entry that is not a string, at ${id}`);
    const token = entry === "" ? `[EMPTY_${id}]` : entry;
    const other = idOf.get(token);
    if (other !== undefined)
      throw invalid("tokens", `has ${JSON.stringify(token)} twice, at ${other} and ${id}`);
    idOf.set(token, id);
    tokens.push(token);
    const type = types?.[id] ?? tokenType.normal;
    if (type !== tokenType.control && type !== tokenType.userDefined && type !== tokenType.unknown) continue;
    addedTokens.push({
      id,
      content: token,
      special: type !== tokenType.userDefined,
      singleWord: false,
      stripLeft: false,
      stripRight: false,
      normalized: false,
    });
  }
  return { tokens, idOf, addedTokens };
}

function readMerges(
  metadata: Metadata,
  tokens: readonly string[],
  idOf: ReadonlyMap<string, number>,
): Int32Array {
  const merges = metadata.get(`${prefix}merges`);
  if (!Array.isArray(merges)) throw invalid("merges", "must be a list of strings");
  if (merges.length >= maxMergeRules)
    throw invalid("merges", `has ${merges.length} entries; fewer than ${maxMergeRules} are accepted`);
  const triples = new Int32Array(merges.length * 3);
  for (const [rank, merge] of (merges as unknown[]).entries()) {
    const cut = typeof merge === "string" ? merge.indexOf(" ", 1) : -1;
    if (typeof merge !== "string" || cut < 0) throw invalid("merges", `has no pair of tokens at ${rank}`);
    const left = merge.slice(0, cut);
    const right = merge.slice(cut + 1);
    // Vocabularies list merged tokens in the order of their merges, so that the next token is nearly always the one meant.
    const next = rank === 0 ? 0 : triples[rank * 3 - 1]! + 1;
    const leftId = idOf.get(left);
    const rightId = idOf.get(right);
    if (leftId === undefined || rightId === undefined || !isJoined(tokens[next], left, right)) {
      writeMerge(triples, rank, left, right, idOf, 0, `${prefix}merges`);
      continue;
    }
    triples[rank * 3] = leftId;
    triples[rank * 3 + 1] = rightId;
    triples[rank * 3 + 2] = next;
  }
  return triples;
}

function isJoined(token: string | undefined, left: string, right: string): boolean {
  return token?.length === left.length + right.length && token.startsWith(left) && token.endsWith(right);
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
