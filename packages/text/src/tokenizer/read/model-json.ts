import { OctavoError } from "@octavo/protocol/errors";
import { maxMergeRules } from "../models/merge.js";
import { type ModelSpecification, packVocabulary } from "../specification.js";
import type { Vocabulary } from "../token-table.js";
import { TokenTable } from "../token-table.js";
import { JsonReader } from "./json-reader.js";

/** Ids at or beyond this are refused: four times the largest published vocabularies. */
export const vocabularyLimit = 2 ** 20;
const maxTokenLength = 65_536;

interface ReadModel {
  readonly vocabulary: Vocabulary;
  readonly table: TokenTable;
  readonly model: ModelSpecification;
}

/** Reads the `model` of tokenizer.json: BPE, Unigram or WordPiece. */
export function readModel(reader: JsonReader): ReadModel {
  const object = reader.object();
  // files from before the `type` field are BPE when they have merges
  const type = reader.get("type").oneOf(["BPE", "Unigram", "WordPiece"], typeWithout(object));
  return type === "BPE" ? readBpe(reader) : type === "Unigram" ? readUnigram(reader) : readWordPiece(reader);
}

/** Older files name no type. */
function typeWithout(object: Readonly<Record<string, unknown>>): "BPE" | "Unigram" | "WordPiece" {
  if (Object.hasOwn(object, "merges")) return "BPE";
  return Object.hasOwn(object, "max_input_chars_per_word") ? "WordPiece" : "Unigram";
}

function readWordPiece(reader: JsonReader): ReadModel {
  const vocabulary = packVocabulary(readVocabulary(reader.get("vocab")));
  const table = new TokenTable(vocabulary);
  const unknown = reader.get("unk_token");
  const longestWord = reader.get("max_input_chars_per_word");
  const unknownId = table.idOf(unknown.string("[UNK]"));
  if (unknownId === undefined) throw unknown.fail("is a token that the vocabulary does not have");
  return {
    vocabulary,
    table,
    model: {
      kind: "word-piece",
      unknownId,
      continuingSubwordPrefix: reader.get("continuing_subword_prefix").string("##"),
      maxCharacters: longestWord.isAbsent ? 100 : longestWord.index(maxTokenLength),
    },
  };
}

function readBpe(reader: JsonReader): ReadModel {
  const vocabulary = packVocabulary(readVocabulary(reader.get("vocab")));
  const table = new TokenTable(vocabulary);
  const dropout = reader.get("dropout");
  if (!dropout.isAbsent && dropout.value !== 0)
    throw dropout.fail(
      `is set: tokenisation with dropout is random and not supported`,
      "artifact_unsupported",
    );
  const unknown = reader.get("unk_token");
  const unknownId = unknown.isAbsent ? undefined : table.idOf(unknown.string());
  if (!unknown.isAbsent && unknownId === undefined && unknown.string() !== "") {
    throw unknown.fail(`is ${JSON.stringify(unknown.string())}, which the vocabulary does not have`);
  }
  const continuingSubwordPrefix = reader.get("continuing_subword_prefix").string("");
  return {
    vocabulary,
    table,
    model: {
      kind: "bpe",
      merges: readMerges(reader.get("merges"), table, continuingSubwordPrefix.length),
      unknownId,
      fuseUnknown: reader.get("fuse_unk").boolean(false),
      byteFallback: reader.get("byte_fallback").boolean(false),
      ignoreMerges: reader.get("ignore_merges").boolean(false),
      continuingSubwordPrefix,
      endOfWordSuffix: reader.get("end_of_word_suffix").string(""),
    },
  };
}

/** By id; undefined where no token has it. */
function readVocabulary(reader: JsonReader): (string | undefined)[] {
  const ids = reader.object();
  const names = Object.keys(ids);
  if (names.length > vocabularyLimit)
    throw reader.fail(`has ${names.length} tokens; at most ${vocabularyLimit} are accepted`);
  const tokens: (string | undefined)[] = [];
  for (const token of names) {
    const value = ids[token];
    const id =
      typeof value === "number" && value >= 0 && value < vocabularyLimit && Number.isInteger(value)
        ? value
        : new JsonReader(value, `${reader.path}[${JSON.stringify(token.slice(0, 100))}]`).index(
            vocabularyLimit,
          );
    if (token.length > maxTokenLength) throw tooLong(token, `${reader.path}, id ${id}`);
    while (tokens.length <= id) tokens.push(undefined);
    if (tokens[id] !== undefined) {
      throw reader.fail(
        `gives the id ${id} to both ${JSON.stringify(tokens[id])} and ${JSON.stringify(token)}`,
      );
    }
    tokens[id] = token;
  }
  return tokens;
}

/** Triples of ids from `"left right"` lines or `["left", "right"]` pairs. */
function readMerges(reader: JsonReader, table: TokenTable, prefixLength: number): Int32Array {
  const merges = reader.array();
  if (merges.length >= maxMergeRules)
    throw reader.fail(`has ${merges.length} rules; fewer than ${maxMergeRules} are accepted`);
  const triples = new Int32Array(merges.length * 3);
  for (let rank = 0; rank < merges.length; rank++) {
    const merge = merges[rank];
    const pair: unknown = typeof merge === "string" ? merge.split(" ") : merge;
    const [left, right]: unknown[] = Array.isArray(pair) && pair.length === 2 ? pair : [];
    if (typeof left !== "string" || typeof right !== "string") {
      throw new JsonReader(merge, `${reader.path}[${rank}]`).invalid(
        'two tokens, as "left right" or ["left", "right"]',
      );
    }
    writeMerge(triples, rank, left, right, table, prefixLength, reader.path);
  }
  return triples;
}

/** Looks a merge's three tokens up; throws `artifact_invalid` when the vocabulary lacks one. */
export function writeMerge(
  triples: Int32Array,
  rank: number,
  left: string,
  right: string,
  table: TokenTable,
  prefixLength: number,
  path: string,
): void {
  const idOf = (token: string): number => {
    const id = table.idOf(token);
    if (id !== undefined) return id;
    throw new OctavoError(
      "artifact_invalid",
      `${path}[${rank}] merges ${JSON.stringify(left.slice(0, 100))} and ${JSON.stringify(right.slice(0, 100))}, but the vocabulary has no ${JSON.stringify(token.slice(0, 200))}.`,
    );
  };
  const first = idOf(left);
  const second = idOf(right);
  triples[rank * 3] = first;
  triples[rank * 3 + 1] = second;
  const merged = prefixLength === 0 ? table.findPair(first, second) : -1;
  triples[rank * 3 + 2] = merged >= 0 ? merged : idOf(left + right.slice(prefixLength));
}

function readUnigram(reader: JsonReader): ReadModel {
  const listed = reader.get("vocab");
  const entries = listed.array();
  if (entries.length > vocabularyLimit)
    throw listed.fail(`has ${entries.length} tokens; at most ${vocabularyLimit} are accepted`);
  const tokens: string[] = [];
  const scores = new Float64Array(entries.length);
  for (const [id, entry] of entries.entries()) {
    const [token, score] = Array.isArray(entry) ? (entry as unknown[]) : [];
    if (typeof token !== "string" || typeof score !== "number" || !Number.isFinite(score)) {
      throw new JsonReader(entry, `${listed.path}[${id}]`).invalid("a token and its score");
    }
    if (token.length > maxTokenLength) throw tooLong(token, `${listed.path}[${id}]`);
    tokens.push(token);
    scores[id] = score;
  }
  const unknown = reader.get("unk_id");
  const vocabulary = packVocabulary(tokens);
  return {
    vocabulary,
    table: new TokenTable(vocabulary),
    model: {
      kind: "unigram",
      scores,
      unknownId: unknown.isAbsent ? undefined : unknown.index(entries.length),
      byteFallback: reader.get("byte_fallback").boolean(false),
    },
  };
}

function tooLong(token: string, path: string): OctavoError {
  return new OctavoError(
    "artifact_invalid",
    `${path} is a token of ${token.length} characters; at most ${maxTokenLength} are accepted.`,
  );
}
