import type { ArtifactFile } from "@octavo/text/files/artifact-file";
import { artifactInvalid } from "@octavo/text/files/artifact-file";
import { GgufStrings } from "@octavo/text/files/gguf-strings";

const windowBytes = 4 * 1024 * 1024;
/** Real headers with 256k tokens, merges and scores stay below 40 MB. */
const maxHeaderBytes = 256 * 1024 * 1024;
/** Bytes of the length (u64) of a string or an array. */
const lengthBytes = 8;

/**
 * Reads a GGUF header front to back through a sliding window, so that only the header's own pages are fetched however
 * large the file is. Every length is checked against the rest of the file before memory of that size is allocated.
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

  /** An array of strings. Those that lie whole within the window are stepped over together, the others one by one. */
  strings(count: number, what: string): GgufStrings {
    const starts = new Uint32Array(count + 1);
    const parts: Buffer[] = [];
    let end = 0;
    const keep = (...bytes: readonly Buffer[]): void => {
      for (const part of bytes) {
        parts.push(part);
        end += part.length;
      }
    };
    for (let index = 0; index < count;) {
      const from = this.#at;
      index = this.#stepOver(starts, index, count, end - from);
      if (this.#at > from) keep(this.#window.subarray(from, this.#at));
      if (index === count) break;
      const length = this.count(`bytes of ${what}`, 1);
      starts[index++] = end + lengthBytes;
      keep(Buffer.alloc(lengthBytes), this.bytes(length));
    }
    starts[count] = end + lengthBytes;
    // A copy, since the window is larger than what is kept of it.
    return new GgufStrings(Buffer.concat(parts, end), starts);
  }

  bytes(length: number): Buffer {
    const at = this.#take(length);
    return this.#window.subarray(at, at + length);
  }

  invalid(problem: string): ReturnType<typeof artifactInvalid> {
    return artifactInvalid(this.#file.path, `${problem} (byte ${this.position})`);
  }

  /**
   * Steps over strings from the `index`-th to the `count`-th, as long as they lie whole within the window, and notes where each
   * begins: its offset in the window and `shift`. Returns the index of the next.
   */
  #stepOver(starts: Uint32Array, index: number, count: number, shift: number): number {
    const window = this.#window;
    let at = this.#at;
    let next = index;
    // Byte by byte: every start runs this a quarter of a million times before the compiler has seen to it.
    for (; next < count && at + lengthBytes <= window.length; next++) {
      if (
        window[at + 3]! >= 0x80 ||
        (window[at + 4]! | window[at + 5]! | window[at + 6]! | window[at + 7]!) !== 0
      )
        break;
      const length = window[at]! | (window[at + 1]! << 8) | (window[at + 2]! << 16) | (window[at + 3]! << 24);
      const end = at + lengthBytes + length;
      if (end > window.length) break;
      starts[next] = at + lengthBytes + shift;
      at = end;
    }
    this.#at = at;
    return next;
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
