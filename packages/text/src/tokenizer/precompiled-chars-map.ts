import { OctavoError } from "@octavo/protocol/errors";
import { CharacterSet } from "../regex/character-set.js";

/** Created on first use: they load Unicode tables that few vocabularies need. */
let segmenter: Intl.Segmenter | undefined;
let plainCharacters: CharacterSet | undefined;
/** UTF-16 units given to the segmenter at once. */
const windowLength = 512;
const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/**
 * SentencePiece's compiled normalisation rules. Layout: uint32 byte length of the trie, the trie as little-endian
 * uint32 units of a darts-clone double array, then NUL-terminated UTF-8 replacements that leaves point into.
 */
export class PrecompiledCharsMap {
  readonly #units: Uint32Array;
  readonly #replacements: Uint8Array;
  readonly #ascii: (string | undefined)[];

  /** Throws `artifact_invalid` when the sizes do not fit. */
  constructor(bytes: Uint8Array) {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const trieBytes = bytes.byteLength >= 4 ? view.getUint32(0, true) : NaN;
    if (!(trieBytes >= 4 && trieBytes % 4 === 0 && 4 + trieBytes <= bytes.byteLength)) {
      throw new OctavoError(
        "artifact_invalid",
        "The tokenizer's precompiled_charsmap is truncated: its trie is longer than the data.",
      );
    }
    this.#units = new Uint32Array(trieBytes / 4);
    for (let index = 0; index < this.#units.length; index++)
      this.#units[index] = view.getUint32(4 + index * 4, true);
    this.#replacements = bytes.slice(4 + trieBytes);
    this.#ascii = Array.from({ length: 128 }, (_, code) => this.#lookup(String.fromCharCode(code)));
  }

  /** Applied per grapheme cluster shorter than 6 bytes, else per character, as Hugging Face's Precompiled does. */
  normalizeClusters(text: string): string {
    let result = "";
    let copied = 0;
    for (let index = 0; index < text.length;) {
      let end = index + 1;
      while (end < text.length && !isBorder(text.charCodeAt(end - 1), text.charCodeAt(end))) end++;
      const replacement =
        end === index + 1 ? this.#characterAt(text, index) : this.#normalizeStretch(text.slice(index, end));
      if (replacement !== undefined) {
        result += text.slice(copied, index) + replacement;
        copied = end;
      }
      index = end;
    }
    return copied === 0 ? text : result + text.slice(copied);
  }

  /** The replacement of one character, undefined when it stays. */
  #characterAt(text: string, index: number): string | undefined {
    const code = text.charCodeAt(index);
    return code < 128 ? this.#ascii[code] : this.#lookup(text[index]!);
  }

  /** Cut into clusters window by window: the segmenter's time grows faster than the text it is given. */
  #normalizeStretch(text: string): string {
    segmenter ??= new Intl.Segmenter("und", { granularity: "grapheme" });
    let result = "";
    let size = windowLength;
    for (let start = 0; start < text.length;) {
      const window = text.slice(start, start + size);
      const reachesEnd = start + size >= text.length;
      let consumed = 0;
      for (const { segment, index } of segmenter.segment(window)) {
        const mayGoOn = !reachesEnd && index + segment.length === window.length;
        if (mayGoOn) break;
        result += this.#normalizeCluster(segment);
        consumed = index + segment.length;
      }
      start += consumed;
      size = consumed === 0 ? size * 2 : windowLength;
    }
    return result;
  }

  #normalizeCluster(cluster: string): string {
    if (encoder.encode(cluster).length < 6) {
      const whole = this.#lookup(cluster);
      if (whole !== undefined) return whole;
    }
    let result = "";
    for (const character of cluster) result += this.#lookup(character) ?? character;
    return result;
  }

  /** The replacement for the shortest key that the text starts with: Hugging Face takes its first hit. */
  #lookup(text: string): string | undefined {
    let found: string | undefined;
    this.#walk(encoder.encode(text), 0, (leaf) => {
      found = this.#replacementAt(leaf);
      return false;
    });
    return found;
  }

  /** Walks the trie along bytes; calls with the leaf and the end of every key met, until told to stop. */
  #walk(bytes: Uint8Array, start: number, onKey: (leaf: number, end: number) => boolean): void {
    let position = offsetOf(this.#units[0]!);
    for (let index = start; index < bytes.length;) {
      const byte = bytes[index++]!;
      position ^= byte;
      const unit = this.#units[position];
      if (byte === 0 || unit === undefined || (unit & 0x800000ff) >>> 0 !== byte) return;
      position ^= offsetOf(unit);
      const leaf = (unit & 0x100) === 0 ? undefined : this.#units[position];
      if (leaf !== undefined && !onKey(leaf & 0x7fffffff, index)) return;
    }
  }

  /** The longest key at each place is replaced, as SentencePiece and llama.cpp do. */
  normalizeLongest(text: string): string {
    const bytes = encoder.encode(text);
    let result = "";
    let copied = 0;
    for (let index = 0; index < bytes.length;) {
      let longestEnd = index;
      let leaf = 0;
      this.#walk(bytes, index, (at, end) => {
        longestEnd = end;
        leaf = at;
        return true;
      });
      if (longestEnd === index) {
        index++;
        // the other bytes of a character start no key
        while (index < bytes.length && (bytes[index]! & 0xc0) === 0x80) index++;
        continue;
      }
      result += decoder.decode(bytes.subarray(copied, index)) + (this.#replacementAt(leaf) ?? "");
      index = longestEnd;
      copied = index;
    }
    return result + decoder.decode(bytes.subarray(copied));
  }

  #replacementAt(start: number): string | undefined {
    if (start > this.#replacements.length) return undefined;
    const end = this.#replacements.indexOf(0, start);
    return decoder.decode(this.#replacements.subarray(start, end < 0 ? this.#replacements.length : end));
  }
}

/** Characters that neither continue a grapheme cluster nor are continued by one another. */
const plainCharacter =
  "(?!\\p{Grapheme_Extend}|\\p{Extended_Pictographic})(?:[\\x00-\\x7f]|(?=[\\p{L}\\p{N}\\p{P}\\p{Zs}])" +
  "[\\p{sc=Latin}\\p{sc=Greek}\\p{sc=Cyrillic}\\p{sc=Han}\\p{sc=Hiragana}\\p{sc=Katakana}\\p{sc=Common}])";

/** Whether a cluster surely ends between two UTF-16 units. */
function isBorder(before: number, after: number): boolean {
  plainCharacters ??= CharacterSet.matching(plainCharacter);
  return plainCharacters.has(before) && plainCharacters.has(after) && !(before === 13 && after === 10);
}

function offsetOf(unit: number): number {
  return (unit >>> 10) << ((unit & 0x200) >>> 6);
}
