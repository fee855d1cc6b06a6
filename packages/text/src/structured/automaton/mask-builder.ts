import type { AutomatonMasks, LocalMask } from "./mask-cache.js";
import { PlainRuns } from "./plain-runs.js";
import type { TermStore } from "./term-store.js";
import type { Term } from "./term.js";
import { tooComplex } from "./term-algebra.js";
import { TrieWalk, unitsPerPart } from "./trie-walk.js";
import { spend } from "../../work.js";
import { maskWordsOf, type GrammarVocabulary } from "./vocabulary.js";

/** Words of a mask that are filled in the time of a derivative. */
const wordsPerUnit = 512;
/** With more stacks than this the trie is walked once for all of them. */
const maxSeparateStacks = 8;

/**
 * Finds the tokens that may follow a state. The mask of a frame has two parts: what the rest of the rule allows, which is
 * the same wherever the rule is called and is cached per term; and, below the trie nodes at which the rule may end, what
 * its caller allows.
 */
export class MaskBuilder {
  readonly #store: TermStore;
  readonly #vocabulary: GrammarVocabulary;
  readonly #plain: PlainRuns;
  readonly #masks: AutomatonMasks;
  readonly #states: Term[];

  constructor(store: TermStore, vocabulary: GrammarVocabulary, masks: AutomatonMasks) {
    this.#store = store;
    this.#vocabulary = vocabulary;
    this.#plain = new PlainRuns(store);
    this.#masks = masks;
    this.#states = Array.from({ length: vocabulary.trie.maxDepth + 1 }, () => store.empty);
  }

  /** Shared and cached: read only. */
  maskOf(term: Term): Uint32Array {
    const known = this.#masks.whole(term);
    if (known !== undefined) return known;
    const making = this.#making(term, this.#states);
    for (;;) {
      const { done, value } = making.next();
      if (done === true) return value;
    }
  }

  /**
   * Makes a mask in parts, between which a caller can pause; yields the units of work that each took. Throws `invalid_request`
   * where all of them take more than `limit` derivatives.
   */
  *making(term: Term, limit = Infinity): Generator<number, void> {
    if (this.#masks.whole(term) !== undefined) return;
    const states = Array.from(this.#states, () => this.#store.empty);
    const making = this.#making(term, states);
    let work = 0;
    for (;;) {
      this.#store.startWork();
      if (making.next().done === true) return;
      work += this.#store.work;
      if (work > limit) throw tooComplex();
      yield unitsPerPart + this.#store.work;
    }
  }

  *#making(term: Term, states: Term[]): Making<Uint32Array> {
    const mask = new Uint32Array(maskWordsOf(this.#vocabulary.size));
    spend(mask.length / wordsPerUnit);
    yield* this.#addTokens(term, mask, states);
    this.#masks.setWhole(term, mask);
    return mask;
  }

  *#addTokens(term: Term, mask: Uint32Array, states: Term[]): Making<void> {
    const parts = term.kind === "or" ? term.items : [term];
    const frames = parts.filter(({ kind }) => kind === "frame");
    if (frames.length > maxSeparateStacks) {
      const whole = new TrieWalk(this.#store, this.#vocabulary.trie, 0, term, mask, undefined, states);
      while (!whole.advance()) yield;
      return;
    }
    for (const { left, right } of frames) {
      const local = yield* this.#localMask(left!, states);
      for (let word = 0; word < mask.length; word += 1) mask[word]! |= local.tokens[word]!;
      for (const exit of local.exits) {
        const below = new TrieWalk(this.#store, local.trie, exit, right!, mask, undefined, states);
        while (!below.advance()) yield;
      }
    }
    if (frames.length === parts.length) return;
    const rest = frames.length === 0 ? term : this.#store.or(parts.filter(({ kind }) => kind !== "frame"));
    const own = yield* this.#localMask(rest, states);
    for (let word = 0; word < mask.length; word += 1) mask[word]! |= own.tokens[word]!;
  }

  *#localMask(term: Term, states: Term[]): Making<LocalMask> {
    const known = this.#masks.local(term);
    if (known !== undefined) return known;
    const { tiers, size } = this.#vocabulary;
    const tier = tiers.find(({ plainLength }) => this.#plain.allows(term, plainLength));
    const trie = tier?.otherTrie ?? this.#vocabulary.trie;
    const tokens = new Uint32Array(maskWordsOf(size));
    spend(tokens.length / wordsPerUnit);
    if (tier !== undefined) tokens.set(tier.plainMask);
    const exits: number[] = [];
    const walk = new TrieWalk(this.#store, trie, 0, term, tokens, exits, states);
    while (!walk.advance()) yield;
    const local = { tokens, exits: Int32Array.from(exits), trie };
    this.#masks.setLocal(term, local);
    return local;
  }
}

/** A value that is computed in parts. */
type Making<Result> = Generator<void, Result>;
