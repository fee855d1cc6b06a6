import type { TokenTrie } from "./token-trie.js";

/** What a state's own rule allows of the vocabulary, independent of its callers. */
export interface LocalMask {
  /** Tokens that stay within the state's own part, or end where it may. */
  readonly tokens: Uint32Array;
  /** Nodes of `trie` at which the part may end: what follows decides about the tokens below them. */
  readonly exits: Int32Array;
  readonly trie: TokenTrie;
}

/** Least-recently-used cache with a bound in bytes for all grammars together; each key belongs to one grammar. */
export class MaskCache {
  readonly #maxBytes: number;
  readonly #entries = new Map<object, { readonly value: Uint32Array | LocalMask; readonly bytes: number }>();
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get(key: object): Uint32Array | LocalMask | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    return entry.value;
  }

  set(key: object, value: Uint32Array | LocalMask): void {
    const bytes =
      value instanceof Uint32Array ? value.byteLength : value.tokens.byteLength + value.exits.byteLength;
    const before = this.#entries.get(key);
    if (before !== undefined) this.#drop(key, before.bytes);
    this.#entries.set(key, { value, bytes });
    this.#bytes += bytes;
    for (const [oldest, entry] of this.#entries) {
      if (this.#bytes <= this.#maxBytes || oldest === key) return;
      this.#drop(oldest, entry.bytes);
    }
  }

  #drop(key: object, bytes: number): void {
    this.#entries.delete(key);
    this.#bytes -= bytes;
  }
}
