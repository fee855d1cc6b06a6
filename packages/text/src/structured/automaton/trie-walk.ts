import type { TermStore } from "./term-store.js";
import type { Term } from "./term.js";
import type { TokenTrie } from "./token-trie.js";
import { spend } from "../../work.js";

/** Nodes visited in one part of a walk. */
const nodesPerPart = 256;
/** A node whose state is known takes a fraction of a derivative. */
const nodesPerUnit = 32;
/** Units that the nodes of a part take beside its derivatives. */
export const unitsPerPart = 1 + nodesPerPart / nodesPerUnit;
/** A part ends behind the node at which it has taken so many derivatives. */
const maxDerivatives = 1024;

/**
 * Adds the tokens below node `top` that may follow `term` to a mask; notes the nodes, `top` among them, after which the
 * term could be over. `states` has the state at each depth: it is the walk's own from one part to the next.
 */
export class TrieWalk {
  readonly #store: TermStore;
  readonly #trie: TokenTrie;
  readonly #end: number;
  readonly #mask: Uint32Array;
  readonly #exits: number[] | undefined;
  readonly #states: Term[];
  #node: number;

  constructor(
    store: TermStore,
    trie: TokenTrie,
    top: number,
    term: Term,
    mask: Uint32Array,
    exits: number[] | undefined,
    states: Term[],
  ) {
    this.#store = store;
    this.#trie = trie;
    this.#end = trie.ends[top]!;
    this.#mask = mask;
    this.#exits = exits;
    this.#states = states;
    this.#node = top + 1;
    states[trie.depths[top]!] = term;
    if (exits !== undefined && term.nullable) exits.push(top);
  }

  /** Continues the walk; returns whether it is finished. */
  advance(): boolean {
    const { bytes, depths, ends, tokenStarts, tokens } = this.#trie;
    const { of: classOf } = this.#store.classes;
    const { empty } = this.#store;
    const states = this.#states;
    const mask = this.#mask;
    const exits = this.#exits;
    const end = this.#end;
    let node = this.#node;
    spend(unitsPerPart);
    const mostWork = this.#store.work + maxDerivatives;
    for (let left = nodesPerPart; node < end && left > 0 && this.#store.work < mostWork; left -= 1) {
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
    this.#node = node;
    return node >= end;
  }
}
