import { setImmediate as nextTurn } from "node:timers/promises";
import { unlessAborted } from "@octavo/protocol/abort";
import { OctavoError } from "@octavo/protocol/errors";
import type { TermGrammar } from "./automaton/matcher.js";
import type { TokenSource, GrammarVocabulary } from "./automaton/vocabulary.js";
import type { CompileQueue } from "./compile-queue.js";
import { compilingCancelled } from "./compiling-cancelled.js";
import { entriesToDrop } from "./fair-eviction.js";
import type { Grammar, GrammarSpec } from "./grammar.js";
import type { RuleSet } from "./node.js";

/** Bounds of compiling grammars: work in steps, times in ms, memory in bytes. */
export interface GrammarCompilerOptions {
  /** Ids that the model can give; may be more than the tokenizer has. */
  readonly vocabSize: number;
  /** A grammar that takes more steps to compile is refused; default 3 million, some seconds. */
  readonly maxWork?: number;
  /** A thread that has not answered for so long is replaced, and its grammar fails with `overloaded`; default 60 s. */
  readonly timeoutMs?: number;
  /** Memory for masks of all grammars together; default 64 MiB. */
  readonly maskCacheBytes?: number;
  /** Memory for all cached grammars together beside their masks; default 128 MiB. */
  readonly grammarCacheBytes?: number;
  /** Called for each request: how long it took, and whether the grammar was there already. */
  readonly onCompiled?: (seconds: number, cached: boolean) => void;
}

const maxSpecLength = 1024 * 1024;
/** Cached grammars of one tenant. */
const maxGrammars = 128;
/** What a cached grammar takes beside what it counts: its specification's length, maps that grow with it. */
const grammarBytes = 16 * 1024;

/** The event loop is kept for this long at a time. */
const maxSliceMs = 4;

interface Entry {
  readonly key: string;
  readonly tenant: string;
  readonly grammar: Promise<TermGrammar>;
  compiled: TermGrammar | undefined;
  numWaiting: number;
  readonly abandonment: AbortController;
}

/** What the first grammar opens: most of this folder's modules are read for it, and no start waits for them. */
interface Opened {
  readonly queue: CompileQueue;
  readonly vocabulary: Promise<GrammarVocabulary>;
  readonly toGrammar: (rules: RuleSet, vocabulary: GrammarVocabulary, tenant: string) => TermGrammar;
}

/**
 * Compiles grammars for one tokenizer: on threads of their own, each content once for a tenant as long as it is remembered: how
 * long a grammar takes must not tell what other tenants sent.
 */
export class GrammarCompiler {
  readonly #tokenizer: TokenSource;
  readonly #options: GrammarCompilerOptions;
  readonly #entries = new Map<string, Entry>();
  #opened: Promise<Opened> | undefined;
  #isDisposed = false;

  constructor(tokenizer: TokenSource, options: GrammarCompilerOptions) {
    this.#tokenizer = tokenizer;
    this.#options = options;
  }

  /**
   * Throws `invalid_request` saying what of the specification is malformed, not supported or too large,
   * `request_cancelled` on abort, `overloaded` when the machine is too busy. Tenants take turns.
   */
  async compile(spec: GrammarSpec, signal?: AbortSignal, tenant = ""): Promise<Grammar> {
    const start = performance.now();
    const content = contentOf(spec);
    const key = `${tenant}\n${content}`;
    const known = this.#entries.get(key);
    const entry = known ?? this.#add(key, content, tenant);
    // Keeps the map in order of last use: the least recently used entry is evicted first.
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    entry.numWaiting += 1;
    let grammar: Grammar;
    try {
      grammar = await unlessAborted(entry.grammar, signal, compilingCancelled);
    } finally {
      entry.numWaiting -= 1;
      if (entry.numWaiting === 0 && entry.compiled === undefined) this.#abandon(entry);
    }
    this.#trim(entry);
    this.#options.onCompiled?.((performance.now() - start) / 1000, known !== undefined);
    return grammar;
  }

  /** Grammars in the cache, and the memory that they take beside their masks. */
  get cached(): { readonly grammars: number; readonly bytes: number } {
    let bytes = 0;
    for (const entry of this.#entries.values()) bytes += bytesOf(entry);
    return { grammars: this.#entries.size, bytes };
  }

  [Symbol.dispose](): void {
    this.#isDisposed = true;
    this.#entries.clear();
    void this.#opened?.then(
      ({ queue }) => queue[Symbol.dispose](),
      () => undefined,
    );
  }

  /** No request waits for it any more: the next request for it starts over. */
  #abandon(entry: Entry): void {
    if (this.#entries.get(entry.key) === entry) this.#entries.delete(entry.key);
    entry.abandonment.abort();
  }

  #add(key: string, content: string, tenant: string): Entry {
    const abandonment = new AbortController();
    const grammar = this.#make(content, tenant, abandonment.signal);
    const entry: Entry = { key, tenant, grammar, compiled: undefined, numWaiting: 0, abandonment };
    grammar.then(
      (compiled) => {
        entry.compiled = compiled;
      },
      () => {
        if (this.#entries.get(key) === entry) this.#entries.delete(key);
      },
    );
    return entry;
  }

  async #make(content: string, tenant: string, abandoned: AbortSignal): Promise<TermGrammar> {
    if (this.#isDisposed) throw new OctavoError("shutting_down", "The grammar compiler is closed.");
    this.#opened ??= this.#open();
    const { queue, vocabulary, toGrammar } = await this.#opened;
    const rules = await queue.compile(content, tenant, abandoned);
    const grammar = toGrammar(rules, await vocabulary, tenant);
    try {
      await warmUp(grammar, abandoned);
    } catch (error) {
      // the compiling thread has a larger stack than this one
      throw error instanceof RangeError ? tooDeep(error) : error;
    }
    return grammar;
  }

  async #open(): Promise<Opened> {
    const { vocabSize, maxWork = 3_000_000, timeoutMs = 60_000 } = this.#options;
    const { maskCacheBytes = 64 * 1024 * 1024 } = this.#options;
    const { CompileQueue, MaskCache, TermGrammar, collectTokenBytes } = await import("./compiling-parts.js");
    const source = await collectTokenBytes(this.#tokenizer, vocabSize, () => nextTurn());
    const specialTokens = Array.from(
      this.#tokenizer.specialTokenIds,
      (id) => this.#tokenizer.idToToken(id) ?? "",
    );
    let queue: CompileQueue | undefined;
    const vocabulary = new Promise<GrammarVocabulary>((resolve) => {
      const start = { source, specialTokens: specialTokens.filter((text) => text !== ""), maxWork };
      queue = new CompileQueue(start, { timeoutMs }, resolve);
    });
    const cache = new MaskCache(maskCacheBytes);
    return {
      queue: queue!,
      vocabulary,
      toGrammar: (rules, ready, tenant) => new TermGrammar(rules, ready, cache, tenant),
    };
  }

  #trim(current: Entry): void {
    const { grammarCacheBytes: maxBytes = 128 * 1024 * 1024 } = this.#options;
    const amounts = { maxEach: maxGrammars, maxBytes };
    for (const { key } of entriesToDrop(this.#entries.values(), current, amounts, bytesOf))
      this.#entries.delete(key);
  }
}

/** Grows while sequences reach new states. */
function bytesOf({ key, compiled }: Entry): number {
  return grammarBytes + key.length + (compiled?.bytes ?? 0);
}

/** Makes the first mask before the grammar is used, in slices between which the event loop turns. */
async function warmUp(grammar: TermGrammar, abandoned: AbortSignal): Promise<void> {
  const parts = grammar.warm();
  let start = performance.now();
  while (parts.next().done !== true) {
    if (performance.now() - start < maxSliceMs) continue;
    await nextTurn();
    if (abandoned.aborted) throw compilingCancelled();
    start = performance.now();
  }
}

function contentOf(spec: GrammarSpec): string {
  let key: string;
  try {
    key = JSON.stringify(spec);
  } catch (cause) {
    throw tooDeep(cause);
  }
  if (key.length > maxSpecLength) {
    throw new OctavoError(
      "invalid_request",
      `The constraint has ${key.length} characters as JSON; at most ${maxSpecLength} are accepted.`,
    );
  }
  return key;
}

function tooDeep(cause: unknown): OctavoError {
  return new OctavoError("invalid_request", "The constraint is nested too deeply.", { cause });
}
