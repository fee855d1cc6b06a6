import { isUtf8 } from "node:buffer";

/** Strings end to end in one: string i ends, in UTF-16 units, at `ends[i]`. */
export interface PackedStrings {
  readonly text: string;
  readonly ends: Uint32Array;
}

/** GGUF writes each string behind its length as a u64. */
const prefixBytes = 8;
const noBytes = Buffer.alloc(0);

/**
 * An array of strings as a GGUF file has it. A vocabulary and its merges are hundreds of thousands of strings, of which some readers
 * want a few and others a text to cut: they stay bytes, and are decoded when asked for. What is no UTF-8 reads as U+FFFD.
 */
export class GgufStrings implements Iterable<string> {
  readonly #bytes: Buffer;
  readonly #starts: Uint32Array;

  /** `bytes`: the array as in the file, from the first length to the end of the last string; `starts`: where each begins, behind its length. */
  constructor(bytes: Buffer, starts: Uint32Array) {
    this.#bytes = bytes;
    this.#starts = starts;
  }

  static of(strings: readonly string[]): GgufStrings {
    const starts = new Uint32Array(strings.length);
    let end = 0;
    const parts = strings.flatMap((text, index) => {
      const bytes = Buffer.from(text, "utf8");
      starts[index] = end + prefixBytes;
      end += prefixBytes + bytes.length;
      return [Buffer.alloc(prefixBytes), bytes];
    });
    return new GgufStrings(parts.length === 0 ? noBytes : Buffer.concat(parts), starts);
  }

  get length(): number {
    return this.#starts.length;
  }

  at(index: number): string | undefined {
    const start = this.#starts[index];
    return start === undefined ? undefined : this.#bytes.toString("utf8", start, this.#endOf(index));
  }

  *[Symbol.iterator](): Generator<string> {
    for (let index = 0; index < this.length; index++) yield this.at(index) ?? "";
  }

  /** All of them: one decoding, and one look at each byte to tell where the strings end. */
  pack(): PackedStrings {
    const bytes = this.#bytes;
    const packed = Buffer.alloc(Math.max(0, bytes.length - prefixBytes * this.length));
    const ends = new Uint32Array(this.length);
    let at = 0;
    let units = 0;
    let isWhole = true;
    for (let index = 0; index < ends.length; index++) {
      const start = this.#starts[index]!;
      const end = this.#endOf(index);
      // Strings that are no UTF-8 by themselves could be together.
      if (start < end && isContinuation(bytes[start]!)) isWhole = false;
      for (let from = start; from < end; from++) {
        const byte = bytes[from]!;
        packed[at++] = byte;
        if (!isContinuation(byte)) units += byte >= 0xf0 ? 2 : 1;
      }
      ends[index] = units;
    }
    return isWhole && isUtf8(packed)
      ? { text: packed.toString("utf8"), ends }
      : packStrings(Array.from(this));
  }

  #endOf(index: number): number {
    const next = this.#starts[index + 1];
    return next === undefined ? this.#bytes.length : next - prefixBytes;
  }
}

function isContinuation(byte: number): boolean {
  return (byte & 0xc0) === 0x80;
}

export function packStrings(strings: readonly string[]): PackedStrings {
  let end = 0;
  return { text: strings.join(""), ends: Uint32Array.from(strings, (text) => (end += text.length)) };
}
