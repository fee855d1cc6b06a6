import { plainLength } from "./plain-text.js";
import { buildTokenTrie, type TokenText, type TokenTrie } from "./token-trie.js";

/** Tokens of more plain characters are rare and looked at one by one. */
export const maxPlainLength = 24;
/**
 * Stands before the text of a special token, so that no ordinary text is one: no UTF-8 has this byte. A grammar that
 * wants a special token says so by a literal that begins with the mark.
 */
export const specialMark = 0xff;

/** A tokenizer's vocabulary as grammars need it. It is made once, in shared memory, and threads share it. */
export interface Vocabulary {
  /** Ids that a model can give; those without a token are never allowed. */
  readonly size: number;
  /** Bytes of token id: `bytes[starts[id]..starts[id + 1])`. */
  readonly bytes: Uint8Array;
  readonly starts: Int32Array;
  readonly trie: TokenTrie;
  /** The tokens that are not of 1 to `maxPlainLength` plain characters. */
  readonly oddTrie: TokenTrie;
  /** `[maxPlainLength + 1]` masks: the tokens of 1 to k plain characters. */
  readonly plainMasks: readonly Uint32Array[];
}

export function maskWordsOf(size: number): number {
  return Math.ceil(size / 32);
}

/** `bytes` and `starts` as in `Vocabulary`. */
export function buildVocabulary(bytes: Uint8Array, starts: Int32Array): Vocabulary {
  const size = starts.length - 1;
  const masks = Array.from(
    { length: maxPlainLength + 1 },
    () => new Uint32Array(new SharedArrayBuffer(maskWordsOf(size) * 4)),
  );
  const tokens: TokenText[] = [];
  const odd: TokenText[] = [];
  for (let id = 0; id < size; id += 1) {
    const token = bytes.subarray(starts[id], starts[id + 1]);
    if (token.length === 0) continue;
    const entry = { id, text: Buffer.from(token).toString("latin1") };
    tokens.push(entry);
    const length = plainLength(token);
    if (length === undefined || length > maxPlainLength) odd.push(entry);
    else masks[length]![id >> 5]! |= 1 << (id & 31);
  }
  for (let length = 1; length <= maxPlainLength; length += 1) {
    const [shorter, mask] = [masks[length - 1]!, masks[length]!];
    for (let word = 0; word < mask.length; word += 1) mask[word]! |= shorter[word]!;
  }
  return {
    size,
    bytes,
    starts,
    trie: buildTokenTrie(tokens),
    oddTrie: buildTokenTrie(odd),
    plainMasks: masks,
  };
}

/** What a vocabulary is made of: the part of a tokenizer that grammars see. */
export interface TokenSource {
  readonly vocabSize: number;
  readonly specialTokenIds: ReadonlySet<number>;
  idToToken(id: number): string | undefined;
  tokenBytes(id: number): Uint8Array;
}

/** Collects the bytes of all tokens, in slices so that the event loop stays free when `pause` gives it a turn. */
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
