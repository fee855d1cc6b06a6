const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/**
 * Turns a stream of bytes into text that never ends inside a character. Bytes that cannot become a character
 * give U+FFFD by the rule of maximal subparts, as Rust's and WHATWG's lossy decoding.
 */
export class Utf8Stream {
  #held: Uint8Array = new Uint8Array(0);

  get isHolding(): boolean {
    return this.#held.length > 0;
  }

  push(bytes: Uint8Array): string {
    const all = this.#held.length === 0 ? bytes : concatenate(this.#held, bytes);
    const complete = completeLength(all);
    this.#held = all.slice(complete);
    return complete === 0 ? "" : decoder.decode(all.subarray(0, complete));
  }

  /** Text for what is still held. */
  flush(): string {
    const held = this.#held;
    this.#held = new Uint8Array(0);
    return held.length === 0 ? "" : decoder.decode(held);
  }
}

/** Length without a lead byte at the end that still waits for some of its continuation bytes. */
function completeLength(bytes: Uint8Array): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back]!;
    if (byte < 0x80) break;
    if (byte < 0xc0) continue;
    const needed = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
    return needed > back ? bytes.length - back : bytes.length;
  }
  return bytes.length;
}

function concatenate(first: Uint8Array, second: Uint8Array): Uint8Array {
  const all = new Uint8Array(first.length + second.length);
  all.set(first);
  all.set(second, first.length);
  return all;
}
