import { characterOfByte, fallbackTokenOfByte } from "./byte-alphabet.js";
import type {
  ModelSpecification,
  NormalizerSpecification,
  PreTokenizerSpecification,
  TokenizerSpecification,
} from "./specification.js";
import type { TokenTable } from "./token-table.js";

/**
 * The longest text (UTF-16 units) that one token can stand for, so that a text's length says how many tokens it has at least.
 * `Infinity` where a token can swallow any amount of text: steps that drop or join characters without bound, unknown tokens
 * that merge, added tokens that take the white space beside them.
 */
export function maxTextPerToken(specification: TokenizerSpecification, table: TokenTable): number {
  const { vocabulary, model, addedTokens, normalizer, preTokenizer } = specification;
  if (addedTokens.some(({ stripLeft, stripRight }) => stripLeft || stripRight)) return Infinity;
  if (preTokenizer !== undefined && dropsText(preTokenizer)) return Infinity;
  const isByteLevel = hasByteLevel(normalizer) || hasByteLevel(preTokenizer);
  if (!coversAllText(model, isByteLevel, table)) return Infinity;
  let longest = addedTokens.reduce((length, { content }) => Math.max(length, content.length), 1);
  const { bytes, starts, gap } = vocabulary;
  for (let id = 0; id + 1 < starts.length; id += 1) {
    // UTF-8 has at least as many bytes as UTF-16 has units
    if (starts[id + 1]! - gap - starts[id]! <= longest) continue;
    let units = 0;
    for (let at = starts[id]!; at < starts[id + 1]! - gap; at += 1)
      units += (bytes[at]! & 0xc0) === 0x80 ? 0 : bytes[at]! >= 0xf0 ? 2 : 1;
    longest = Math.max(longest, units);
  }
  return longest * (normalizer === undefined ? 1 : shrinkage(normalizer));
}

/** How many times shorter a text can become. */
function shrinkage(normalizer: NormalizerSpecification): number {
  switch (normalizer.kind) {
    case "sequence":
      return normalizer.items.reduce((factor, item) => factor * shrinkage(item), 1);
    case "unicode":
      return { NFC: 4, NFD: 2, NFKC: 8, NFKD: 2 }[normalizer.form];
    case "lowercase":
      return 2;
    case "prepend":
    case "byte-level":
      return 1;
    case "replace": {
      const { pattern, content } = normalizer;
      if (!("literal" in pattern) || content === "") return Infinity;
      return Math.max(1, pattern.literal.length / content.length);
    }
    case "strip":
    case "strip-accents":
    case "bert":
    case "precompiled":
      return Infinity;
  }
}

function dropsText(step: PreTokenizerSpecification): boolean {
  switch (step.kind) {
    case "sequence":
      return step.items.some(dropsText);
    case "split":
    case "punctuation":
      return step.behavior === "removed";
    case "whitespace":
    case "whitespace-split":
    case "character-delimiter":
      return true;
    case "byte-level":
    case "metaspace":
    case "digits":
      return false;
  }
}

function hasByteLevel(step: NormalizerSpecification | PreTokenizerSpecification | undefined): boolean {
  return step?.kind === "sequence" ? step.items.some(hasByteLevel) : step?.kind === "byte-level";
}

/** Whether every character becomes a token of its own at least until tokens merge. */
function coversAllText(model: ModelSpecification, isByteLevel: boolean, table: TokenTable): boolean {
  const hasAll = (tokenOfByte: (byte: number) => string): boolean =>
    Array.from({ length: 256 }, (_, byte) => byte).every(
      (byte) => table.idOf(tokenOfByte(byte)) !== undefined,
    );
  if (isByteLevel && hasAll((byte) => characterOfByte[byte]!)) return true;
  if (model.kind === "bpe") {
    if (model.byteFallback && hasAll(fallbackTokenOfByte)) return true;
    return model.unknownId !== undefined && !model.fuseUnknown;
  }
  if (model.kind === "word-piece") return false;
  if (model.kind === "unigram" && !model.byteFallback) return false;
  return hasAll(fallbackTokenOfByte);
}
