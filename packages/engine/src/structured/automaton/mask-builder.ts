import { type LocalMask, MaskCache } from "./mask-cache.js";
import { PlainRuns } from "./plain-runs.js";
import type { TermStore } from "./term-store.js";
import type { Term } from "./term.js";
import type { TokenTrie } from "./token-trie.js";
import { maskWordsOf, type Vocabulary } from "./vocabulary.js";

/** With more stacks than this the trie is walked once for all of them. */
const maxSeparateStacks = 8;

/**
 * Finds the tokens that may follow a state. The mask of a frame is put together from two parts: what the rest of the
 * rule says, which is the same wherever the rule is called and is kept per term, and, below the trie nodes where the
 * rule may be over, what the caller says.
 */
export class MaskBuilder {
  readonly #store: TermStore;
  readonly #vocabulary: Vocabulary;
  readonly #plain: PlainRuns;
  readonly #cache: MaskCache;
  /** Keys of the local parts in the cache; those of masks are the terms themselves. */
  readonly #localKeys = new WeakMap<Term, object>();
  readonly #states: Term[];

  constructor(store: TermStore, vocabulary: Vocabulary, cache: MaskCache) {
    this.#store = store;
    this.#vocabulary = vocabulary;
    this.#plain = new PlainRuns(store);
    this.#cache = cache;
    this.#states = Array.from({ length: vocabulary.trie.maxDepth + 1 }, () => store.empty);
  }

  /** Shared and kept: not to be written to. */
  maskOf(term: Term): Uint32Array {
    const known = this.#cache.get(term);
    if (known instanceof Uint32Array) return known;
    const mask = new Uint32Array(maskWordsOf(this.#vocabulary.size));
    this.#addTokens(term, mask);
    this.#cache.set(term, mask);
    return mask;
  }

  #addTokens(term: Term, mask: Uint32Array): void {
    const parts = term.kind === "or" ? term.items : [term];
    const frames = parts.filter(({ kind }) => kind === "frame");
    if (frames.length > maxSeparateStacks) {
      this.#walk(this.#vocabulary.trie, 0, term, mask, undefined);
      return;
    }
    for (const { left, right } of frames) {
      const local = this.#localMask(left!);
      for (let word = 0; word < mask.length; word += 1) mask[word]! |= local.tokens[word]!;
      for (const exit of local.exits) this.#walk(local.trie, exit, right!, mask, undefined);
    }
    if (frames.length === parts.length) return;
    const rest = frames.length === 0 ? term : this.#store.or(parts.filter(({ kind }) => kind !== "frame"));
    const own = this.#localMask(rest);
    for (let word = 0; word < mask.length; word += 1) mask[word]! |= own.tokens[word]!;
  }

  #localMask(term: Term): LocalMask {
    let key = this.#localKeys.get(term);
    if (key === undefined) {
      key = {};
      this.#localKeys.set(term, key);
    }
    const known = this.#cache.get(key);
    if (known !== undefined && !(known instanceof Uint32Array)) return known;
    const { tiers, size } = this.#vocabulary;
    const tier = tiers.find(({ plainLength }) => this.#plain.allows(term, plainLength));
    const trie = tier?.otherTrie ?? this.#vocabulary.trie;
    const tokens = new Uint32Array(maskWordsOf(size));
    if (tier !== undefined) tokens.set(tier.plainMask);
    const exits: number[] = [];
    this.#walk(trie, 0, term, tokens, exits);
    const local = { tokens, exits: Int32Array.from(exits), trie };
    this.#cache.set(key, local);
    return local;
  }

  /**
   * Adds the tokens below node `top` that may follow `term`; notes the nodes, `top` among them, after which the term
   * could be over.
   */
  #walk(trie: TokenTrie, top: number, term: Term, mask: Uint32Array, exits: number[] | undefined): void {
    const { bytes, depths, ends, tokenStarts, tokens } = trie;
    const { of: classOf } = this.#store.classes;
    const states = this.#states;
    const { empty } = this.#store;
    const end = ends[top]!;
    states[depths[top]!] = term;
    if (exits !== undefined && term.nullable) exits.push(top);
    for (let node = top + 1; node < end;) {
      const depth = depths[node]!;
      const before = states[depth - 1]!;
      const byteClass = classOf[bytes[node]!]!;
      const rest = before.next?.[byteClass] ?? this.#store.step(before, byteClass);
      if (rest === empty) {
        node = ends[node]!;
        continue;
      }
      states[depth] = rest;
      for (let index = tokenStarts[node]!; index < tokenStarts[node + 1]!; index += 1) {
        const token = tokens[index]!;
        mask[token >> 5]! |= 1 << (token & 31);
      }
      if (exits !== undefined && rest.nullable && ends[node]! > node + 1) exits.push(node);
      node += 1;
    }
  }
}
