import type { Grammar, Matcher } from "../grammar.js";
import type { RuleSet } from "../node.js";
import { MaskBuilder } from "./mask-builder.js";
import type { MaskCache } from "./mask-cache.js";
import type { Term } from "./term.js";
import { tooComplex } from "./term-algebra.js";
import { maxWork, TermStore } from "./term-store.js";
import { maskWordsOf, type GrammarVocabulary } from "./vocabulary.js";

/** Bytes of terms after which new sequences start on a new store; the old one is freed with its last sequence. */
const enoughBytes = 32 * 1024 * 1024;

/** The automaton as far as it is known: states are made when a sequence first reaches them. */
interface Automaton {
  readonly store: TermStore;
  readonly masks: MaskBuilder;
  readonly root: Term;
}

/** A rule set over a vocabulary. */
export class TermGrammar implements Grammar {
  readonly maskWords: number;
  readonly #rules: RuleSet;
  readonly #vocabulary: GrammarVocabulary;
  readonly #cache: MaskCache;
  readonly #tenant: string;
  #automaton: Automaton;

  constructor(rules: RuleSet, vocabulary: GrammarVocabulary, cache: MaskCache, tenant = "") {
    this.#rules = rules;
    this.#vocabulary = vocabulary;
    this.#cache = cache;
    this.#tenant = tenant;
    this.maskWords = maskWordsOf(vocabulary.size);
    this.#automaton = this.#begin();
  }

  /** About the memory that it takes beside masks: rules, table automata and the states known so far. */
  get bytes(): number {
    return (this.#rules.analysis?.bytes ?? 0) + this.#automaton.store.memoryBytes;
  }

  /** Prepares the first mask in parts, between which a caller can pause. */
  *warm(): Generator<unknown, void> {
    const { store, masks, root } = this.#automaton;
    yield* store.building(this.#rules.root);
    yield* masks.making(root);
  }

  start(): Matcher {
    if (this.#automaton.store.memoryBytes > enoughBytes) this.#automaton = this.#begin();
    return new TermMatcher(this.#automaton, this.#vocabulary, this.#automaton.root, []);
  }

  #begin(): Automaton {
    const store = new TermStore(this.#rules);
    return {
      store,
      masks: new MaskBuilder(store, this.#vocabulary, this.#cache.open(this.#tenant)),
      root: store.rule(this.#rules.root),
    };
  }
}

class TermMatcher implements Matcher {
  readonly #automaton: Automaton;
  readonly #vocabulary: GrammarVocabulary;
  /** The state before each accepted token. */
  readonly #history: Term[];
  #term: Term;

  constructor(automaton: Automaton, vocabulary: GrammarVocabulary, term: Term, history: readonly Term[]) {
    this.#automaton = automaton;
    this.#vocabulary = vocabulary;
    this.#term = term;
    this.#history = [...history];
  }

  get numAccepted(): number {
    return this.#history.length;
  }

  get isComplete(): boolean {
    return this.#term.nullable;
  }

  get isFinished(): boolean {
    return this.#term === this.#automaton.store.epsilon;
  }

  accept(token: number): boolean {
    const { store } = this.#automaton;
    const { bytes, starts, size } = this.#vocabulary;
    if (!(token >= 0 && token < size)) return false;
    const [start, end] = [starts[token]!, starts[token + 1]!];
    if (start === end) return false;
    store.startWork();
    const term = withinStack(() => {
      let reached = this.#term;
      for (let index = start; index < end && reached !== store.empty; index += 1)
        reached = store.step(reached, store.classes.of[bytes[index]!]!);
      return reached;
    });
    if (term === store.empty) return false;
    this.#history.push(this.#term);
    this.#term = term;
    return true;
  }

  fillMask(mask: Uint32Array): void {
    mask.set(this.#mask());
  }

  *preparing(): Generator<number, void> {
    const making = this.#automaton.masks.making(this.#term, maxWork);
    for (;;) {
      const { done, value } = withinStack(() => making.next());
      if (done === true) return;
      yield value;
    }
  }

  forcedToken(): number | undefined {
    if (this.isComplete) return undefined;
    let found: number | undefined;
    const mask = this.#mask();
    for (let word = 0; word < mask.length; word += 1) {
      const bits = mask[word]!;
      if (bits === 0) continue;
      if (found !== undefined || (bits & (bits - 1)) !== 0) return undefined;
      found = word * 32 + 31 - Math.clz32(bits);
    }
    return found;
  }

  rollback(count: number): void {
    if (count <= 0) return;
    const kept = Math.max(0, this.#history.length - count);
    this.#term = this.#history[kept] ?? this.#term;
    this.#history.length = kept;
  }

  clone(): Matcher {
    return new TermMatcher(this.#automaton, this.#vocabulary, this.#term, this.#history);
  }

  #mask(): Uint32Array {
    this.#automaton.store.startWork();
    return withinStack(() => this.#automaton.masks.maskOf(this.#term));
  }
}

/** Derivatives recurse as deep as the grammar nests: where the stack ends, the grammar is refused as one that takes too much work. */
function withinStack<Result>(follow: () => Result): Result {
  try {
    return follow();
  } catch (error) {
    throw error instanceof RangeError ? tooComplex() : error;
  }
}
