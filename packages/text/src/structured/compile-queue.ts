import { whenAborted } from "@octavo/protocol/abort";
import { OctavoError } from "@octavo/protocol/errors";
import type { GrammarVocabulary } from "./automaton/vocabulary.js";
import { CompileThread, closed, type WorkerStart } from "./compile-thread.js";
import { compilingCancelled } from "./compiling-cancelled.js";
import type { RuleSet } from "./node.js";

interface Pending {
  /** JSON of a `GrammarSpec`. */
  readonly spec: string;
  /** The tenant that waits for it. */
  readonly tenant: string;
  readonly resolve: (rules: RuleSet) => void;
  readonly reject: (error: OctavoError) => void;
  /** The thread that compiles it. */
  thread: CompileThread | undefined;
}

interface CompileQueueOptions {
  /** A thread that has not answered for so long is replaced. */
  readonly timeoutMs: number;
  /** Default 2. */
  readonly numThreads?: number;
}

const defaultThreads = 2;

/**
 * Compiles waiting grammars on a few threads. A tenant occupies one thread at a time, so slow grammars of one tenant
 * cannot block the others; tenants take turns, and the shortest grammar of a tenant comes first.
 */
export class CompileQueue {
  readonly #threads: readonly CompileThread[];
  readonly #waiting = new Set<Pending>();
  /** Tenants whose grammars are being compiled. */
  readonly #served = new Set<string>();
  /** The last turn of each tenant that has grammars here. */
  readonly #turns = new Map<string, number>();
  readonly #onVocabulary: (vocabulary: GrammarVocabulary) => void;
  #start: WorkerStart;
  #numTurns = 0;
  #isDisposed = false;

  constructor(
    start: WorkerStart,
    { timeoutMs, numThreads = defaultThreads }: CompileQueueOptions,
    onVocabulary: (vocabulary: GrammarVocabulary) => void,
  ) {
    this.#start = start;
    this.#onVocabulary = onVocabulary;
    this.#threads = Array.from({ length: numThreads }, () => new CompileThread(() => this.#start, timeoutMs));
  }

  /** Throws `request_cancelled` when aborted; what is under way then ends with its thread. */
  compile(spec: string, tenant: string, signal: AbortSignal): Promise<RuleSet> {
    return new Promise((resolve, reject) => {
      if (this.#isDisposed) {
        reject(closed());
        return;
      }
      if (signal.aborted) {
        reject(compilingCancelled());
        return;
      }
      const leave = (): void => {
        if (this.#waiting.delete(pending)) pending.reject(compilingCancelled());
        else pending.thread?.cancel();
      };
      const pending: Pending = {
        spec,
        tenant,
        resolve: (rules) => {
          forget();
          resolve(rules);
        },
        reject: (error) => {
          forget();
          reject(error);
        },
        thread: undefined,
      };
      this.#waiting.add(pending);
      // the signal lives as long as its grammar is cached, and what waited for it need not
      const forget = whenAborted(signal, leave);
      this.#next();
    });
  }

  [Symbol.dispose](): void {
    this.#isDisposed = true;
    const lost = [...this.#waiting];
    this.#waiting.clear();
    for (const thread of this.#threads) thread[Symbol.dispose]();
    for (const pending of lost) pending.reject(closed());
  }

  #next(): void {
    if (this.#isDisposed || this.#waiting.size === 0) return;
    if (!("trie" in this.#start.source)) {
      this.#prepare();
      return;
    }
    for (const thread of this.#threads) {
      if (!thread.isFree) continue;
      const chosen = this.#choose();
      if (chosen === undefined) return;
      this.#run(thread, chosen);
    }
  }

  /** The first thread makes the vocabulary, which the others share. */
  #prepare(): void {
    const [first] = this.#threads;
    if (first === undefined || !first.isFree) return;
    first.prepare().then(
      (vocabulary) => {
        this.#start = { ...this.#start, source: vocabulary };
        this.#onVocabulary(vocabulary);
        this.#next();
      },
      (error: unknown) => {
        const lost = [...this.#waiting];
        this.#waiting.clear();
        for (const pending of lost) pending.reject(OctavoError.from(error));
      },
    );
  }

  #choose(): Pending | undefined {
    let best: { readonly pending: Pending; readonly turn: number } | undefined;
    for (const pending of this.#waiting) {
      if (this.#served.has(pending.tenant)) continue;
      const turn = this.#turns.get(pending.tenant) ?? 0;
      const isSooner =
        best === undefined ||
        turn < best.turn ||
        (turn === best.turn && pending.spec.length < best.pending.spec.length);
      if (isSooner) best = { pending, turn };
    }
    return best?.pending;
  }

  #run(thread: CompileThread, pending: Pending): void {
    const { tenant } = pending;
    this.#waiting.delete(pending);
    pending.thread = thread;
    this.#served.add(tenant);
    this.#turns.set(tenant, (this.#numTurns += 1));
    const free = (): void => {
      pending.thread = undefined;
      this.#served.delete(tenant);
      if (![...this.#waiting].some((other) => other.tenant === tenant)) this.#turns.delete(tenant);
      this.#next();
    };
    thread.run(pending.spec).then(
      (rules) => {
        pending.resolve(rules);
        free();
      },
      (error: unknown) => {
        pending.reject(OctavoError.from(error));
        free();
      },
    );
  }
}
