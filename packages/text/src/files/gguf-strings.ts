import { isUtf8 } from "node:buffer";

/** Strings as UTF-8: string i begins at `starts[i]` and ends `gap` bytes before `starts[i + 1]`. There is one start more than strings. */
export interface PackedStrings {
  readonly bytes: Uint8Array;
  readonly starts: Uint32Array;
  readonly gap: number;
}

/** GGUF writes each string behind its length as a u64. */
const prefixBytes = 8;
const lowestNonAscii = 0x80;
const loneSurrogate = /\p{Surrogate}/gu;

/**
 * An array of strings as a GGUF file has it. A vocabulary and its merges are hundreds of thousands of strings, which stay bytes, and
 * are decoded when asked for. Invalid UTF-8 reads as U+FFFD.
 */
export class GgufStrings implements Iterable<string> {
  readonly #bytes: Buffer;
  readonly #starts: Uint32Array;

  /** `bytes`: the array as in the file, from the first length to the end of the last string; `starts`: as packed strings have them. */
  constructor(bytes: Buffer, starts: Uint32Array) {
    this.#bytes = bytes;
    this.#starts = starts;
  }

  static of(strings: readonly string[]): GgufStrings {
    const starts = new Uint32Array(strings.length + 1);
    let end = 0;
    const parts = strings.flatMap((text, index) => {
      const bytes = Buffer.from(text, "utf8");
      starts[index] = end + prefixBytes;
      end += prefixBytes + bytes.length;
      return [Buffer.alloc(prefixBytes), bytes];
    });
    starts[strings.length] = end + prefixBytes;
    return new GgufStrings(Buffer.concat(parts), starts);
  }

  get length(): number {
    return this.#starts.length - 1;
  }

  at(index: number): string | undefined {
    const next = this.#starts[index + 1];
    return next === undefined
      ? undefined
      : this.#bytes.toString("utf8", this.#starts[index], next - prefixBytes);
  }

  *[Symbol.iterator](): Generator<string> {
    for (let index = 0; index < this.length; index++) yield this.at(index) ?? "";
  }

  /** All of them, where they lie if each is UTF-8. */
  pack(): PackedStrings {
    return this.#isUtf8()
      ? { bytes: this.#bytes, starts: this.#starts, gap: prefixBytes }
      : packStrings(Array.from(this));
  }

  /** Lengths are ASCII, and so keep their neighbours' bytes apart, unless they are as long as this. */
  #isUtf8(): boolean {
    const bytes = this.#bytes;
    const starts = this.#starts;
    let from = 0;
    for (let index = 0; index + 1 < starts.length; index++) {
      const start = starts[index]!;
      const end = starts[index + 1]! - prefixBytes;
      if (end - start < lowestNonAscii) continue;
      if (!isUtf8(bytes.subarray(from, start - prefixBytes)) || !isUtf8(bytes.subarray(start, end)))
        return false;
      from = end;
    }
    return isUtf8(bytes.subarray(from));
  }
}

/** Lone surrogates count as U+FFFD. */
export function packStrings(strings: readonly string[]): PackedStrings {
  const starts = new Uint32Array(strings.length + 1);
  let end = 0;
  for (let index = 0; index < strings.length; index++) starts[index + 1] = end += utf8Length(strings[index]!);
  const bytes = Buffer.from(strings.join(""), "utf8");
  // Halves of a pair in two strings are lone ones, which joining them has hidden.
  if (bytes.length !== end) return packStrings(strings.map((text) => text.replace(loneSurrogate, "\ufffd")));
  return { bytes, starts, gap: 0 };
}

function utf8Length(text: string): number {
  let length = text.length;
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index);
    if (unit < 0x80) continue;
    length += unit < 0x800 ? 1 : 2;
    // A pair's four bytes.
    if (unit >= 0xd800 && unit < 0xdc00 && (text.charCodeAt(index + 1) & 0xfc00) === 0xdc00) index++;
  }
  return length;
}
