import type { Vacating } from "@octavo/kernels";
import { type ErrorCode, OctavoError } from "@octavo/protocol/errors";
import type {
  EmbeddingRequest,
  EngineObserver,
  EngineStats,
  GenerationEvent,
  GenerationRequest,
  HotPrefix,
  RefusedRequest,
} from "./api.js";
import type { EvidenceLog } from "./evidence/evidence-log.js";
import type { FaultInjector } from "./faults/fault-injector.js";
import { tokenizeBadWords } from "./sampling/bad-words.js";
import { seedSource } from "./sampling/seeds.js";
import { defaultAccount } from "./scheduler/account.js";
import { GrammarCompiler } from "@octavo/text/structured/grammar-compiler";
import type { Grammar, GrammarSpec } from "@octavo/text/structured/grammar";
import type { ActiveRequest, EngineContext } from "./requests/active-request.js";
import {
  checkEmbeddingRequest,
  checkGenerationRequest,
  type RequestLimits,
} from "./admission/check-request.js";
import { EmbeddingTask, type EmbeddingResult } from "./requests/embedding-task.js";
import {
  type EngineOptions,
  type PauseMode,
  resolveEngineOptions,
  type ResolvedEngineOptions,
  type RunningEngine,
  mostImageTokens,
} from "./engine-options.js";
import { createEngineParts, type EngineParts } from "./engine-parts.js";
import { GenerationTask } from "./requests/generation-task.js";
import { MemoryWatermark } from "./admission/memory-watermark.js";
import { oncePerList } from "./requests/once-per-list.js";
import { StepRunner } from "./step/step-runner.js";
import { StopAutomaton } from "./requests/stop-matcher.js";

/** Starts an engine over a compiled program. Dispose it before the program and the backend. */
export function createEngine(options: EngineOptions): RunningEngine {
  return new StepEngine(resolveEngineOptions(options));
}

/** A pause asked for; `onResting` is told each time that it is found in force. */
interface Pause {
  readonly mode: PauseMode;
  readonly onResting: (() => void)[];
}

/** Accepts requests and runs steps while there are any. */
class StepEngine implements RunningEngine {
  readonly #options: ResolvedEngineOptions;
  readonly #parts: EngineParts;
  readonly #steps: StepRunner;
  readonly #context: EngineContext;
  readonly #memory: MemoryWatermark;
  readonly #grammars: GrammarCompiler;
  readonly #loop: Promise<void>;
  #wake: (() => void) | undefined;
  #numRequests = 0;
  #pause: Pause | undefined;
  #isDraining = false;
  #isStopped = false;
  #disposal: Promise<void> | undefined;
  #failure: OctavoError | undefined;

  constructor(options: ResolvedEngineOptions) {
    this.#options = options;
    this.#parts = createEngineParts(options);
    const { observers, evidence } = this.#parts;
    this.#steps = new StepRunner(this.#parts);
    this.#memory = new MemoryWatermark(options.minFreeMemoryBytes);
    this.#grammars = new GrammarCompiler(options.tokenizer, {
      vocabSize: options.vocabSize,
      onCompiled: (seconds, cached) => observers.notify("onGrammarCompiled", seconds, cached),
    });
    this.#context = {
      backend: options.backend,
      vocabSize: options.vocabSize,
      maxModelLen: options.maxModelLen,
      eosTokenIds: new Set(options.eosTokenIds),
      stopAutomatonOf: oncePerList((stops) => new StopAutomaton(stops)),
      nextSeed: seedSource(options.seed),
      badWordsOf: oncePerList((words) => tokenizeBadWords(words, options.tokenizer)),
      observers,
      evidence,
    };
    this.#loop = this.#run();
  }

  get maxModelLen(): number {
    return this.#options.maxModelLen;
  }

  get evidence(): EvidenceLog {
    return this.#parts.evidence;
  }

  get faults(): FaultInjector | undefined {
    return this.#parts.faults;
  }

  get failure(): OctavoError | undefined {
    return this.#failure;
  }

  get queueDepth(): number {
    return this.#parts.queue.size;
  }

  get stats(): EngineStats {
    const { pool, scheduler, queue } = this.#parts;
    return {
      running: scheduler.running.length,
      waiting: scheduler.numWaiting,
      oldestWaitingMs: queue.oldestWaitingMs(performance.now()),
      tenants: scheduler.tenants,
      kvCacheUsage: pool.numUsed / pool.numBlocks,
      blockSize: pool.blockSize,
      totalBlocks: pool.numBlocks,
      freeBlocks: pool.numFree,
      cachedBlocks: pool.numCached,
      ...(this.#options.speculation !== undefined && {
        numSpeculativeTokens: this.#options.speculation.numSpeculativeTokens,
      }),
      ...(this.#options.maxLoras !== undefined && {
        adapters: { max: this.#options.maxLoras, ...scheduler.adapters },
      }),
    };
  }

  generate(request: GenerationRequest, signal?: AbortSignal): AsyncIterable<GenerationEvent> {
    this.#checkOpen();
    checkGenerationRequest(request, this.#limits);
    this.#makeRoom(request);
    const task = new GenerationTask(
      request,
      this.#numRequests,
      this.#context,
      this.#options.tokenizer,
      (left) => this.#parts.requests.abort(left),
    );
    this.#add(task, signal);
    return task.events;
  }

  async embed(request: EmbeddingRequest, signal?: AbortSignal): Promise<EmbeddingResult> {
    this.#checkOpen();
    checkEmbeddingRequest(request, this.#limits);
    this.#makeRoom(request);
    const { hiddenSize, rowSize = hiddenSize, poolsRows = false } = this.#options;
    const task = new EmbeddingTask(request, this.#numRequests, { rowSize, poolsRows }, this.evidence);
    this.#add(task, signal);
    return task.result;
  }

  compileGrammar(spec: GrammarSpec, signal?: AbortSignal, tenant?: string): Promise<Grammar> {
    return this.#grammars.compile(spec, signal, tenant);
  }

  observe(observer: EngineObserver): Disposable {
    return this.#parts.observers.add(observer);
  }

  async drain(deadlineMs: number): Promise<void> {
    const { requests } = this.#parts;
    this.#isDraining = true;
    const idle = requests.whenIdle();
    // Nothing that is held would go on by itself.
    const graceMs = this.#pause === undefined ? deadlineMs : 0;
    const timer = setTimeout(() => requests.abortAll(), Math.min(Math.max(graceMs, 0), 2 ** 31 - 1));
    await idle;
    clearTimeout(timer);
  }

  hotPrefixes(maxTokens: number): readonly HotPrefix[] {
    return this.#parts.scheduler.hotPrefixes(maxTokens);
  }

  resetPrefixCache(): boolean {
    const { pool, statePool, scheduler } = this.#parts;
    const isEmpty = pool.reset() && (statePool?.reset() ?? true);
    if (isEmpty) scheduler.forgetHotPrefixes();
    return isEmpty;
  }

  async pause(mode: PauseMode): Promise<void> {
    this.#checkOpen();
    if (mode === "abort") this.#parts.requests.abortAll();
    const pause = { mode, onResting: this.#pause?.onResting ?? [] };
    this.#pause = pause;
    const resting = new Promise<void>((resolve) => pause.onResting.push(resolve));
    this.#wake?.();
    // A loop that ends rests for good.
    await Promise.race([resting, this.#loop]);
    if (this.#failure !== undefined) this.#checkOpen();
  }

  resume(): void {
    this.#pause = undefined;
    this.#wake?.();
  }

  vacateCaches(backend: Vacating): void {
    if (!this.resetPrefixCache())
      throw new OctavoError("internal_error", "the engine does not rest: blocks are in use");
    this.#parts.speculation?.vacate(backend);
    backend.vacate(this.#parts.cache);
  }

  refillCaches(backend: Vacating): void {
    backend.refillCache(this.#parts.cache);
    this.#parts.speculation?.refill(backend);
  }

  async prepare(onProgress?: (done: number, total: number) => void): Promise<void> {
    const { backend, program } = this.#options;
    await backend.prepare?.(program, this.#parts.cache, onProgress);
    await backend.settled?.();
  }

  get cacheBytes(): number {
    return this.#parts.cache.byteLength;
  }

  checkIntegrity(): void {
    this.#parts.scheduler.checkIntegrity();
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#disposal ??= this.#dispose();
    return this.#disposal;
  }

  get #limits(): RequestLimits {
    const {
      maxModelLen,
      vocabSize,
      schedulingPolicy,
      enableFaultInjection: hasFaults,
      hasHead = true,
      hiddenSize,
    } = this.#options;
    const hasPriorities = schedulingPolicy === "priority";
    const maxImageTokens = mostImageTokens(this.#options);
    return { maxModelLen, vocabSize, hasPriorities, hasFaults, hasHead, maxImageTokens, hiddenSize };
  }

  #checkOpen(): void {
    if (this.#failure !== undefined) {
      throw new OctavoError("engine_failed", this.#failure.message, { cause: this.#failure });
    }
    if (this.#isDraining)
      throw new OctavoError("shutting_down", "The engine is shutting down and takes no new requests.");
  }

  /** Makes room in the queue; throws `queue_full`, `overloaded` or `request_quarantined` if the request cannot be queued. */
  #makeRoom(request: GenerationRequest | EmbeddingRequest): void {
    const { scheduler, queue, requests, quarantine, observers } = this.#parts;
    const { requestId, account = defaultAccount, batch, promptTokens } = request;
    const freeSlots = this.#options.maxNumSeqs - scheduler.running.length;
    try {
      quarantine.check(request);
      this.#memory.check();
      const displaced = queue.check({ account, numPromptTokens: promptTokens.length }, freeSlots, batch);
      if (displaced !== undefined) requests.refuse(displaced, "displaced", queue.displacement(displaced));
    } catch (thrown) {
      const { tenant, lane = 0 } = account;
      const reason = refusals[OctavoError.from(thrown).code] ?? "queue_full";
      observers.notify("onRefused", { requestId, tenant, lane, reason });
      throw thrown;
    }
  }

  #add(request: ActiveRequest, signal: AbortSignal | undefined): void {
    const { queue, requests, journal, evidence } = this.#parts;
    request.adapter?.checkServed(this.#options.program);
    this.#numRequests += 1;
    request.timeline.queueDepthAtArrival = queue.size;
    evidence.add(request);
    journal?.queued(request);
    requests.add(request, signal);
    this.#wake?.();
  }

  async #run(): Promise<void> {
    const { requests, journal } = this.#parts;
    const { hooks } = this.#options;
    while (!this.#isStopped && this.#failure === undefined) {
      const rests = this.#rests();
      if (rests || requests.size === 0) {
        journal?.write();
        requests.deliver();
        if (rests) for (const tell of this.#pause?.onResting.splice(0) ?? []) tell();
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
        this.#wake = undefined;
        continue;
      }
      try {
        if (!(await this.#steps.run(this.#pause === undefined))) continue;
        const kept = hooks.afterStep?.(this);
        if (kept instanceof Promise) await kept;
      } catch (thrown) {
        this.#fail(thrown);
      }
    }
    requests.deliver();
  }

  /** Between steps: whether a pause is in force, for which running sequences give their blocks back. */
  #rests(): boolean {
    if (this.#pause === undefined) return false;
    const { scheduler } = this.#parts;
    if (this.#pause.mode === "wait" && scheduler.running.length > 0) return false;
    for (const sequence of scheduler.running.slice()) scheduler.preempt(sequence);
    return true;
  }

  #fail(thrown: unknown): void {
    const cause = OctavoError.from(thrown);
    this.#failure = new OctavoError("engine_failed", `The engine has stopped: ${cause.message}`, {
      cause: thrown,
    });
    this.evidence.abandonStep();
    this.#parts.requests.failAll(this.#failure);
  }

  async #dispose(): Promise<void> {
    const { cache, speculation, requests, journal, faults } = this.#parts;
    this.#isDraining = true;
    faults?.close();
    requests.abortAll();
    await requests.whenIdle();
    this.#isStopped = true;
    this.#wake?.();
    await this.#loop;
    journal?.[Symbol.dispose]();
    this.#grammars[Symbol.dispose]();
    speculation?.[Symbol.dispose]();
    cache[Symbol.dispose]();
  }
}

/** Why a request was refused, by error code; otherwise the queue was full. */
const refusals: Partial<Record<ErrorCode, RefusedRequest["reason"]>> = {
  request_quarantined: "quarantined",
  overloaded: "memory",
};
