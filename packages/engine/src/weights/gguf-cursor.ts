import { isUtf8 } from "node:buffer";
import type { ArtifactFile } from "./artifact-file.js";
import { artifactInvalid } from "./artifact-file.js";

const windowBytes = 4 * 1024 * 1024;
/** Real headers with 256k tokens, merges and scores stay below 40 MB. */
const maxHeaderBytes = 256 * 1024 * 1024;

/**
 * Reads a GGUF header front to back through a sliding window, so that only the header's own pages are fetched however
 * large the file is. Every length is checked against what is left of the file before anything of that size is made.
 */
export class GgufCursor {
  readonly #file: ArtifactFile;
  /** File offset of the window's first byte. */
  #base = 0;
  #window: Buffer = Buffer.alloc(0);
  /** Offset within the window. */
  #at = 0;

  constructor(file: ArtifactFile) {
    this.#file = file;
  }

  get position(): number {
    return this.#base + this.#at;
  }

  get remaining(): number {
    return this.#file.byteLength - this.position;
  }

  u8(): number {
    return this.#window.readUInt8(this.#take(1));
  }
  i8(): number {
    return this.#window.readInt8(this.#take(1));
  }
  u16(): number {
    return this.#window.readUInt16LE(this.#take(2));
  }
  i16(): number {
    return this.#window.readInt16LE(this.#take(2));
  }
  u32(): number {
    return this.#window.readUInt32LE(this.#take(4));
  }
  i32(): number {
    return this.#window.readInt32LE(this.#take(4));
  }
  f32(): number {
    return this.#window.readFloatLE(this.#take(4));
  }
  f64(): number {
    return this.#window.readDoubleLE(this.#take(8));
  }
  /** A number where it is exact, a bigint above 2^53. */
  u64(): number | bigint {
    const at = this.#take(8);
    const high = this.#window.readUInt32LE(at + 4);
    if (high < 0x200000) return high * 0x1_0000_0000 + this.#window.readUInt32LE(at);
    return this.#window.readBigUInt64LE(at);
  }
  i64(): number | bigint {
    const value = this.#window.readBigInt64LE(this.#take(8));
    return value >= Number.MIN_SAFE_INTEGER && value <= Number.MAX_SAFE_INTEGER ? Number(value) : value;
  }

  /** A u64 that counts or measures something of at least `bytesEach` bytes in what is left of the file. */
  count(what: string, bytesEach: number): number {
    const value = this.u64();
    if (typeof value === "bigint" || value * bytesEach > this.remaining) {
      throw this.invalid(`claims ${value} ${what}, more than the rest of the file could hold`);
    }
    return value;
  }

  string(what: string): string {
    const length = this.count(`bytes of ${what}`, 1);
    const at = this.#take(length);
    return this.#window.toString("utf8", at, at + length);
  }

  /**
   * An array of strings. Vocabularies hold hundreds of thousands of short ones, and decoding them one by one costs more
   * than all the rest of a header; the short ones of a window are decoded together and cut apart.
   */
  strings(count: number, what: string): string[] {
    const values: string[] = [];
    while (values.length < count) if (!this.#decodeRun(values, count, what)) values.push(this.string(what));
    return values;
  }

  bytes(length: number): Buffer {
    const at = this.#take(length);
    return this.#window.subarray(at, at + length);
  }

  invalid(problem: string): ReturnType<typeof artifactInvalid> {
    return artifactInvalid(this.#file.path, `${problem} (byte ${this.position})`);
  }

  /**
   * Takes the strings of under 128 bytes that come next and lie whole within the window; false when there is none. Their
   * length prefixes are then eight ASCII characters each, so one decoding of the stretch gives every string, and counting
   * UTF-16 units along the bytes tells where each begins.
   */
  #decodeRun(values: string[], count: number, what: string): boolean {
    const window = this.#window;
    const start = this.#at;
    let end = start;
    let strings = 0;
    while (values.length + strings < count && end + 8 <= window.length) {
      const length = window.readUInt32LE(end);
      if (length >= 128 || window.readUInt32LE(end + 4) !== 0 || end + 8 + length > window.length) break;
      end += 8 + length;
      strings++;
    }
    const stretch = window.subarray(start, end);
    if (strings === 0) return false;
    if (!isUtf8(stretch)) {
      for (; strings > 0; strings--) values.push(this.string(what));
      return true;
    }
    const text = stretch.toString("utf8");
    let at = start;
    let unit = 0;
    for (; strings > 0; strings--) {
      const stop = at + 8 + (window[at] ?? 0);
      const first = unit + 8;
      unit = first;
      for (at += 8; at < stop; at++) {
        const byte = window[at] ?? 0;
        if ((byte & 0xc0) !== 0x80) unit += byte >= 0xf0 ? 2 : 1;
      }
      values.push(text.slice(first, unit));
    }
    this.#at = end;
    return true;
  }

  /** Makes the next `length` bytes available and steps over them; the offset of the first within the window. */
  #take(length: number): number {
    if (this.#at + length > this.#window.length) this.#slide(length);
    const at = this.#at;
    this.#at += length;
    return at;
  }

  #slide(length: number): void {
    const base = this.position;
    if (base + length > maxHeaderBytes)
      throw this.invalid(`has a header of more than ${maxHeaderBytes} bytes`);
    if (length > this.#file.byteLength - base) throw this.invalid("is truncated inside its header");
    this.#window = this.#file.read(
      base,
      Math.min(Math.max(length, windowBytes), this.#file.byteLength - base),
    );
    this.#base = base;
    this.#at = 0;
  }
}
