import { plainLength } from "./plain-text.js";
import { buildTokenTrie, sortTokens, type TokenText, type TokenTrie } from "./token-trie.js";

/**
 * Lengths of plain text, descending. Tokens up to such a length are allowed together where any plain text of that length
 * may follow: the longest for most states, shorter ones near the end of a bounded string. Other tokens are checked one by one.
 */
const plainLengths = [24, 12, 8] as const;
/**
 * Precedes the text of a special token, so that ordinary text never matches one: this byte does not occur in UTF-8. A grammar
 * asks for a special token by a literal that begins with the mark.
 */
export const specialMark = 0xff;

/** A tokenizer's vocabulary as grammars need it, built once in memory that threads share. */
export interface GrammarVocabulary {
  /** Ids that a model can give; those without a token are never allowed. */
  readonly size: number;
  /** Bytes of token id: `bytes[starts[id]..starts[id + 1])`. */
  readonly bytes: Uint8Array;
  readonly starts: Int32Array;
  readonly trie: TokenTrie;
  /** For each of `plainLengths`. */
  readonly tiers: readonly VocabularyTier[];
}

interface VocabularyTier {
  readonly plainLength: number;
  /** The tokens of 1 to `plainLength` plain characters. */
  readonly plainMask: Uint32Array;
  /** All others. */
  readonly otherTrie: TokenTrie;
}

export function maskWordsOf(size: number): number {
  return Math.ceil(size / 32);
}

/** `bytes` and `starts` as in `GrammarVocabulary`. */
export function buildVocabulary(bytes: Uint8Array, starts: Int32Array): GrammarVocabulary {
  const size = starts.length - 1;
  const tokens: TokenText[] = [];
  const lengths = new Map<TokenText, number>();
  for (let id = 0; id < size; id += 1) {
    const token = bytes.subarray(starts[id], starts[id + 1]);
    if (token.length === 0) continue;
    const entry = { id, text: Buffer.from(token).toString("latin1") };
    tokens.push(entry);
    lengths.set(entry, plainLength(token) ?? Number.POSITIVE_INFINITY);
  }
  const sorted = sortTokens(tokens);
  const tiers = plainLengths.map((length): VocabularyTier => {
    const plainMask = new Uint32Array(new SharedArrayBuffer(maskWordsOf(size) * 4));
    const others = sorted.filter((token) => {
      if (lengths.get(token)! > length) return true;
      plainMask[token.id >> 5]! |= 1 << (token.id & 31);
      return false;
    });
    return { plainLength: length, plainMask, otherTrie: buildTokenTrie(others) };
  });
  return { size, bytes, starts, trie: buildTokenTrie(sorted), tiers };
}

/** The part of a tokenizer that grammars need. */
export interface TokenSource {
  readonly vocabSize: number;
  readonly specialTokenIds: ReadonlySet<number>;
  idToToken(id: number): string | undefined;
  tokenBytes(id: number): Uint8Array;
}

/** Collects the bytes of all tokens, in slices, calling `pause` between them so that the event loop stays free. */
export async function collectTokenBytes(
  tokenizer: TokenSource,
  size: number,
  pause: () => Promise<void>,
): Promise<{ readonly bytes: Uint8Array; readonly starts: Int32Array }> {
  const sliceTokens = 4096;
  const starts = new Int32Array(new SharedArrayBuffer((size + 1) * 4));
  const parts: Uint8Array[] = [];
  let length = 0;
  for (let id = 0; id < size; id += 1) {
    if (id % sliceTokens === sliceTokens - 1) await pause();
    if (id < tokenizer.vocabSize && tokenizer.idToToken(id) !== undefined) {
      const own = tokenizer.tokenBytes(id);
      const part =
        tokenizer.specialTokenIds.has(id) && own.length > 0 ? Uint8Array.of(specialMark, ...own) : own;
      parts.push(part);
      length += part.length;
    }
    starts[id + 1] = length;
  }
  const bytes = new Uint8Array(new SharedArrayBuffer(length));
  let offset = 0;
  for (const part of parts) {
    bytes.set(part, offset);
    offset += part.length;
  }
  return { bytes, starts };
}
