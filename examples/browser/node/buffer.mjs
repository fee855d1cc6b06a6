// As much of `node:buffer` as the engine uses on a page.
const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

const texts = {
  utf8: (bytes) => decoder.decode(bytes),
  latin1: (bytes) => Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""),
  hex: (bytes) => bytes.toHex(),
  base64: (bytes) => bytes.toBase64(),
  base64url: (bytes) => bytes.toBase64({ alphabet: "base64url", omitPadding: true }),
};

export class Buffer extends Uint8Array {
  static alloc = (length) => new Buffer(length);
  static allocUnsafe = Buffer.alloc;
  static allocUnsafeSlow = Buffer.alloc;
  static isBuffer = (value) => value instanceof Buffer;

  /** Shares an ArrayBuffer, and copies everything else. */
  static from(value, encodingOrOffset, length) {
    if (value instanceof ArrayBuffer) return new Buffer(value, encodingOrOffset, length);
    if (typeof value !== "string") return new Buffer(value);
    if (encodingOrOffset === "base64") return new Buffer(Uint8Array.fromBase64(value));
    if (encodingOrOffset === "latin1") return super.from(value, (unit) => unit.charCodeAt(0));
    return new Buffer(encoder.encode(value));
  }

  static concat(parts) {
    const whole = new Buffer(parts.reduce((sum, part) => sum + part.length, 0));
    let at = 0;
    for (const part of parts) {
      whole.set(part, at);
      at += part.length;
    }
    return whole;
  }

  static compare(one, other) {
    const at = one.findIndex((byte, index) => byte !== other[index]);
    return at < 0 ? one.length - other.length : one[at] - (other[at] ?? -1);
  }

  toString(encoding = "utf8", start = 0, end = this.length) {
    return texts[encoding](this.subarray(start, end));
  }

  readBigUInt64LE(offset = 0) {
    return new DataView(this.buffer, this.byteOffset).getBigUint64(offset, true);
  }

  /** Of a byte, or of several one behind the other. */
  indexOf(wanted, from = 0) {
    if (typeof wanted === "number") return super.indexOf(wanted, from);
    for (let at = super.indexOf(wanted[0], from); at >= 0; at = super.indexOf(wanted[0], at + 1))
      if (wanted.every((byte, index) => this[at + index] === byte)) return at;
    return -1;
  }
}

export function isUtf8(bytes) {
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return true;
  } catch {
    return false;
  }
}
