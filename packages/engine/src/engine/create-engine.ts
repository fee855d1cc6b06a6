import type { KvCache, RowResult, StepResult } from "@octavo/kernels";
import { type ErrorCode, OctavoError } from "@octavo/protocol";
import type {
  EmbeddingRequest,
  EngineObserver,
  EngineStats,
  GenerationEvent,
  GenerationRequest,
  RefusedRequest,
} from "../api.js";
import { EvidenceLog } from "../evidence/evidence-log.js";
import { createFaultInjector } from "../faults/create-fault-injector.js";
import type { FaultInjector } from "../faults/fault-injector.js";
import { BlockPool } from "../kv-cache/block-pool.js";
import { tokenizeBadWords } from "../sampling/bad-words.js";
import { defaultAccount } from "../scheduler/account.js";
import { alone } from "../scheduler/policies/alone.js";
import { PrefillPacer } from "../scheduler/prefill-pacer.js";
import { Scheduler, type ScheduledStep } from "../scheduler/scheduler.js";
import type { Sequence } from "../scheduler/sequence.js";
import { Speculation } from "../speculation/speculation.js";
import { GrammarCompiler } from "../structured/grammar-compiler.js";
import type { Grammar, GrammarSpec } from "../structured/grammar.js";
import type { ActiveRequest, EngineContext } from "./active-request.js";
import { AdmissionQueue } from "./admission-queue.js";
import { checkEmbeddingRequest, checkGenerationRequest, type RequestLimits } from "./check-request.js";
import { CrashJournal } from "./crash-journal.js";
import { EmbeddingTask, type EmbeddingResult } from "./embedding-task.js";
import {
  type EngineOptions,
  resolveEngineOptions,
  type ResolvedEngineOptions,
  type RunningEngine,
} from "./engine-options.js";
import { GenerationTask } from "./generation-task.js";
import { oncePerList } from "./once-per-list.js";
import { MemoryWatermark } from "./memory-watermark.js";
import { ObserverList } from "./observer-list.js";
import { Quarantine, quarantined } from "./quarantine.js";
import { RequestRegistry } from "./request-registry.js";
import { StepFailures } from "./step-failures.js";
import { StepPlanBuilder } from "./step-plan-builder.js";
import { StopAutomaton } from "./stop-matcher.js";

/** Starts an engine over a compiled program. Dispose it before the program and the backend. */
export function createEngine(options: EngineOptions): RunningEngine {
  return new StepEngine(resolveEngineOptions(options));
}

/**
 * The loop: plan a step, hand it to the backend, give readers what the step before brought while it computes, then
 * apply its results. Only the applying stands between two steps; it decides which sequences go on.
 */
class StepEngine implements RunningEngine {
  readonly #options: ResolvedEngineOptions;
  readonly #pool: BlockPool;
  readonly #cache: KvCache;
  readonly #scheduler: Scheduler;
  readonly #pacer: PrefillPacer;
  readonly #plans: StepPlanBuilder;
  readonly #speculation: Speculation | undefined;
  readonly #context: EngineContext;
  readonly #observers = new ObserverList();
  readonly evidence: EvidenceLog;
  readonly #queue: AdmissionQueue<ActiveRequest>;
  readonly #requests: RequestRegistry;
  readonly #failures = new StepFailures<ActiveRequest>();
  /** Undefined unless it was asked for. */
  readonly #journal: CrashJournal | undefined;
  readonly #quarantine: Quarantine;
  readonly #memory: MemoryWatermark;
  readonly #grammars: GrammarCompiler;
  /** Undefined, and then nowhere looked at, unless it was asked for. */
  readonly faults: FaultInjector | undefined;
  readonly #loop: Promise<void>;
  #wake: (() => void) | undefined;
  #numRequests = 0;
  #isDraining = false;
  #isStopped = false;
  #disposal: Promise<void> | undefined;
  #failure: OctavoError | undefined;

  constructor(options: ResolvedEngineOptions) {
    this.#options = options;
    const { backend, numBlocks, blockSize, maxNumSeqs, maxNumBatchedTokens, hooks } = options;
    const { crashJournal, onWarning = () => undefined } = options;
    this.#journal = crashJournal === undefined ? undefined : new CrashJournal(crashJournal, onWarning);
    this.#quarantine = new Quarantine(this.#journal);
    this.#pool = new BlockPool(numBlocks, blockSize);
    this.#scheduler = new Scheduler(this.#pool, { ...options, policy: options.schedulingPolicy });
    this.#pacer = new PrefillPacer(options.maxPrefillStepMs);
    this.#plans = new StepPlanBuilder(
      maxNumSeqs,
      maxNumBatchedTokens,
      blockSize,
      hooks.onLogits !== undefined,
    );
    this.#queue = new AdmissionQueue({
      maxRequests: options.maxQueuedRequests,
      maxTokens: options.maxQueuedTokens,
      maxRequestsPerTenant: options.maxQueuedRequestsPerTenant,
      maxTokensPerTenant: options.maxQueuedTokensPerTenant,
      isShared: options.schedulingPolicy === "fair",
    });
    this.#memory = new MemoryWatermark(options.minFreeMemoryBytes);
    this.#speculation =
      options.speculation && new Speculation(options.speculation, this.#pool, this.#scheduler);
    this.#requests = new RequestRegistry(
      this.#scheduler,
      this.#queue,
      this.#observers,
      (sequence) => this.#speculation?.release(sequence),
      (request) => this.#journal?.ended(request),
    );
    this.#grammars = new GrammarCompiler(options.tokenizer, {
      vocabSize: options.vocabSize,
      onCompiled: (seconds, cached) => this.#observers.notify("onGrammarCompiled", seconds, cached),
    });
    this.evidence = new EvidenceLog(options.hiddenSize, blockSize, (requestId, kernelMs) =>
      this.#observers.notify("onSettled", requestId, kernelMs),
    );
    this.#context = {
      backend,
      vocabSize: options.vocabSize,
      maxModelLen: options.maxModelLen,
      eosTokenIds: new Set(options.eosTokenIds),
      stopAutomatonOf: oncePerList((stops) => new StopAutomaton(stops)),
      badWordsOf: oncePerList((words) => tokenizeBadWords(words, options.tokenizer)),
      observers: this.#observers,
      evidence: this.evidence,
    };
    this.faults = options.enableFaultInjection
      ? createFaultInjector(this.#scheduler, this.#requests, this.#observers)
      : undefined;
    this.#cache = backend.createKvCache({ ...options.kv, numBlocks, blockSize });
    this.#loop = this.#run();
  }

  get maxModelLen(): number {
    return this.#options.maxModelLen;
  }

  get failure(): OctavoError | undefined {
    return this.#failure;
  }

  get queueDepth(): number {
    return this.#queue.size;
  }

  get stats(): EngineStats {
    return {
      running: this.#scheduler.running.length,
      waiting: this.#scheduler.numWaiting,
      oldestWaitingMs: this.#queue.oldestWaitingMs(performance.now()),
      tenants: this.#scheduler.tenants,
      kvCacheUsage: this.#pool.numUsed / this.#pool.numBlocks,
      blockSize: this.#pool.blockSize,
      totalBlocks: this.#pool.numBlocks,
      freeBlocks: this.#pool.numFree,
      cachedBlocks: this.#pool.numCached,
      ...(this.#options.speculation !== undefined && {
        numSpeculativeTokens: this.#options.speculation.numSpeculativeTokens,
      }),
      ...(this.#options.maxLoras !== undefined && {
        adapters: { max: this.#options.maxLoras, ...this.#scheduler.adapters },
      }),
    };
  }

  generate(request: GenerationRequest, signal?: AbortSignal): AsyncIterable<GenerationEvent> {
    this.#checkOpen();
    checkGenerationRequest(request, this.#limits);
    this.#makePlace(request);
    const task = new GenerationTask(
      request,
      this.#numRequests,
      this.#context,
      this.#options.tokenizer,
      (left) => this.#requests.abort(left),
    );
    this.#add(task, signal);
    return task.events;
  }

  async embed(request: EmbeddingRequest, signal?: AbortSignal): Promise<EmbeddingResult> {
    this.#checkOpen();
    checkEmbeddingRequest(request, this.#limits);
    this.#makePlace(request);
    const task = new EmbeddingTask(request, this.#numRequests, this.#options.hiddenSize, this.evidence);
    this.#add(task, signal);
    return task.result;
  }

  compileGrammar(spec: GrammarSpec, signal?: AbortSignal, tenant?: string): Promise<Grammar> {
    return this.#grammars.compile(spec, signal, tenant);
  }

  observe(observer: EngineObserver): Disposable {
    return this.#observers.add(observer);
  }

  async drain(deadlineMs: number): Promise<void> {
    this.#isDraining = true;
    const idle = this.#requests.whenIdle();
    const timer = setTimeout(() => this.#requests.abortAll(), Math.min(Math.max(deadlineMs, 0), 2 ** 31 - 1));
    await idle;
    clearTimeout(timer);
  }

  resetPrefixCache(): boolean {
    return this.#pool.reset();
  }

  checkIntegrity(): void {
    this.#scheduler.checkIntegrity();
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#disposal ??= this.#dispose();
    return this.#disposal;
  }

  get #limits(): RequestLimits {
    const { maxModelLen, vocabSize, schedulingPolicy, enableFaultInjection: hasFaults } = this.#options;
    return { maxModelLen, vocabSize, hasPriorities: schedulingPolicy === "priority", hasFaults };
  }

  #checkOpen(): void {
    if (this.#failure !== undefined) {
      throw new OctavoError("engine_failed", this.#failure.message, { cause: this.#failure });
    }
    if (this.#isDraining)
      throw new OctavoError("shutting_down", "The engine is shutting down and takes no new requests.");
  }

  readonly #requestOf = (sequence: Sequence): ActiveRequest => this.#requests.of(sequence);

  /** Finds a place in the queue; throws `queue_full`, `overloaded`, or `request_quarantined` for one that must not have any. */
  #makePlace(request: GenerationRequest | EmbeddingRequest): void {
    const { requestId, account = defaultAccount, batch, promptTokens } = request;
    const freePlaces = this.#options.maxNumSeqs - this.#scheduler.running.length;
    try {
      this.#quarantine.check(request);
      this.#memory.check();
      const displaced = this.#queue.check(
        { account, numPromptTokens: promptTokens.length },
        freePlaces,
        batch,
      );
      if (displaced !== undefined)
        this.#requests.refuse(displaced, "displaced", this.#queue.displacement(displaced));
    } catch (thrown) {
      const { tenant, lane = 0 } = account;
      const reason = refusals[OctavoError.from(thrown).code] ?? "queue_full";
      this.#observers.notify("onRefused", { requestId, tenant, lane, reason });
      throw thrown;
    }
  }

  #add(request: ActiveRequest, signal: AbortSignal | undefined): void {
    request.adapter?.checkServed(this.#options.program);
    this.#numRequests += 1;
    request.timeline.queueDepthAtArrival = this.#queue.size;
    this.evidence.add(request);
    this.#journal?.queued(request);
    this.#requests.add(request, signal);
    this.#wake?.();
  }

  async #run(): Promise<void> {
    while (!this.#isStopped && this.#failure === undefined) {
      if (this.#requests.size === 0) {
        this.#journal?.write();
        this.#requests.deliver();
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
        this.#wake = undefined;
        continue;
      }
      try {
        await this.#step();
      } catch (thrown) {
        this.#fail(thrown);
      }
    }
    this.#requests.deliver();
  }

  async #step(): Promise<void> {
    const { backend, program, hooks } = this.#options;
    const startMs = performance.now();
    const evictionsBefore = this.#pool.numEvictions;
    const step = this.#plan();
    if (step.sequences.length === 0) return;
    // Only a model takes time to guess; a step must not wait for a turn of the event loop else.
    const drafting = this.#speculation?.draft(step, this.#requestOf);
    if (drafting !== undefined) await drafting;
    const plan = this.#plans.build(step.sequences, this.#requestOf);
    const draftTokens = plan.numTokens - step.prefillTokens - step.decodeTokens;
    const blocksUsed = this.#pool.numUsed;
    this.evidence.beginStep(
      step.sequences,
      step.prefillTokens,
      (sequence) => this.#requests.of(sequence).timeline,
    );
    this.#journal?.write();
    const turn = eventLoopTurn();
    let result: StepResult;
    try {
      const pending = backend.execute(program, this.#cache, plan);
      this.#requests.deliver();
      result = await pending;
    } catch (thrown) {
      await turn;
      this.#recover(step, startMs, thrown);
      return;
    }
    // A backend that answers at once must not keep timers and sockets waiting.
    await turn;
    this.#failures.noteSuccess();
    const held = this.faults?.hold(result.computeMs);
    const computeMs = held === undefined ? result.computeMs : await held;
    this.#pacer.observe(step.prefillTokens, computeMs);
    const { prefillTokens, decodeTokens } = step;
    this.#scheduler.observe({ prefillTokens, decodeTokens: decodeTokens + draftTokens }, computeMs);
    this.evidence.measureStep(computeMs);
    const generatedTokens = this.#apply(step, result);
    const end = {
      startMs,
      durationMs: performance.now() - startMs,
      blocksUsed,
      blocksEvicted: this.#pool.numEvictions - evictionsBefore,
      preemptions: step.preempted.length,
    };
    this.#speculation?.observe(step, draftTokens, Math.max(computeMs, end.durationMs));
    this.#observers.notify("onStep", {
      step: this.evidence.currentStep,
      computeMs,
      prefillMs: this.evidence.prefillMs,
      numSequences: step.sequences.length,
      prefillTokens: step.prefillTokens,
      decodeTokens: step.decodeTokens,
      draftTokens,
      generatedTokens,
      ...end,
    });
    this.evidence.endStep(end);
    const kept = hooks.afterStep?.(this);
    if (kept instanceof Promise) await kept;
  }

  /** A step has failed: nothing of it counts, and whoever was in it is tried alone, unless that is hopeless. */
  #recover({ sequences, preempted }: ScheduledStep, startMs: number, thrown: unknown): void {
    this.evidence.measureStep(0);
    this.evidence.endStep({
      startMs,
      durationMs: performance.now() - startMs,
      blocksUsed: this.#pool.numUsed,
      blocksEvicted: 0,
      preemptions: preempted.length,
    });
    this.#observers.notify("onStepFailed", OctavoError.from(thrown));
    const guilty = this.#failures.noteFailure(sequences, (sequence) => this.#requests.of(sequence));
    if (this.#failures.isHopeless) throw thrown;
    for (const sequence of sequences) {
      this.#scheduler.forget(sequence);
      sequence.numScheduled = 0;
    }
    for (const sequence of this.#scheduler.running.slice()) this.#scheduler.preempt(sequence);
    for (const sequence of sequences) {
      const request = this.#requests.of(sequence);
      if (request.isOver) this.#requests.remove(request, sequence);
    }
    if (guilty === undefined || guilty.isOver) return;
    this.#quarantine.add({ promptTokens: guilty.promptTokens, adapter: guilty.adapter });
    this.#requests.refuse(guilty, "quarantined", quarantined(thrown));
  }

  #plan(): ScheduledStep {
    const { hooks } = this.#options;
    if (hooks.choosePreemptions !== undefined) {
      const running = [...this.#scheduler.running];
      const views = running.map(({ group, index, numTokens, numComputed }) => ({
        requestId: group.requestId,
        index,
        numTokens,
        numComputed,
      }));
      for (const chosen of new Set(hooks.choosePreemptions(views))) {
        const sequence = running[chosen];
        if (sequence !== undefined) this.#scheduler.preempt(sequence);
      }
    }
    this.faults?.beforePlan();
    const suspect = this.#failures.onTrial;
    const step =
      suspect === undefined
        ? this.#scheduler.schedule(this.#pacer.maxTokens)
        : this.#scheduler.schedule(Number.POSITIVE_INFINITY, alone(suspect.sequences));
    if (step.sequences.length === 0)
      throw new OctavoError("internal_error", "requests are waiting, but none can run");
    for (const sequence of step.preempted) {
      this.#observers.notify("onPreemption", sequence.group.requestId);
      this.#requests.of(sequence).timeline.notePreemption({
        sequence: sequence.index,
        step: this.evidence.currentStep,
        byOrder: sequence.preemptedBy,
      });
    }
    const nowMs = performance.now();
    for (const sequence of step.admitted) {
      const request = this.#requests.of(sequence);
      try {
        this.#admitted(request, sequence, nowMs);
      } catch (thrown) {
        for (const other of request.sequences) other.numScheduled = 0;
        this.#requests.fail(request, OctavoError.from(thrown));
      }
    }
    return step.admitted.some((sequence) => sequence.status === "finished")
      ? { ...step, sequences: step.sequences.filter((sequence) => sequence.status === "running") }
      : step;
  }

  #admitted(request: ActiveRequest, sequence: Sequence, nowMs: number): void {
    this.#queue.leave(request);
    this.#journal?.began(request);
    if (request.timeline.admittedMs === undefined) {
      request.timeline.admittedMs = nowMs;
      request.timeline.evictedPrefixTokens = sequence.evictedPrefixTokens;
      if (this.#options.enablePrefixCaching && sequence.firstWantedRow > 0) {
        this.#observers.notify("onPrefixLookup", sequence.numPromptTokens, sequence.numComputed);
      }
    }
    request.prepare(sequence);
  }

  /** Returns how many tokens the sequences were given. */
  #apply(step: ScheduledStep, result: StepResult): number {
    const { rowStarts } = this.#plans;
    if (result.rows.length !== rowStarts[step.sequences.length]) {
      throw new OctavoError(
        "internal_error",
        `the backend returned ${result.rows.length} rows instead of ${rowStarts.at(-1)}`,
      );
    }
    const nowMs = performance.now();
    let generatedTokens = 0;
    for (let index = 0; index < step.sequences.length; index += 1) {
      const sequence = step.sequences[index]!;
      // A sibling's failure in this very step may have ended it.
      if (sequence.status !== "running") continue;
      const request = this.#requests.of(sequence);
      const start = rowStarts[index]!;
      const end = rowStarts[index + 1]!;
      const before = sequence.numTokens;
      this.#applyRows(request, sequence, result.rows, start, end, nowMs);
      generatedTokens += sequence.numTokens - before;
      if (this.#options.hooks.onLogits !== undefined) this.#reportLogits(sequence, result.rows, start, end);
    }
    return generatedTokens;
  }

  #applyRows(
    request: ActiveRequest,
    sequence: Sequence,
    rows: readonly RowResult[],
    start: number,
    end: number,
    nowMs: number,
  ): void {
    this.#scheduler.commit(sequence);
    // What a bad row came from must not be found by others.
    for (let row = start; row < end; row += 1) {
      if (rows[row]!.error === "non_finite_logits") this.#scheduler.forget(sequence);
    }
    try {
      const isDone = request.isOver || request.applyRows(sequence, rows, start, end, nowMs);
      this.#settleDraft(request, sequence);
      if (!request.isOver) this.#requests.noteEvents(request);
      if (isDone) this.#requests.remove(request, sequence);
    } catch (thrown) {
      const error = OctavoError.from(thrown);
      if (error.code === "internal_error") this.#scheduler.forget(sequence);
      this.#requests.fail(request, error);
    }
  }

  #settleDraft(request: ActiveRequest, sequence: Sequence): void {
    const settled = this.#speculation?.settle(sequence);
    if (settled === undefined) return;
    const { numGuessed, numRight } = settled;
    request.timeline.noteDraft(numGuessed, numRight);
    this.#observers.notify("onDraft", numGuessed, numRight);
  }

  #reportLogits(sequence: Sequence, rows: readonly RowResult[], start: number, end: number): void {
    for (let row = start; row < end; row += 1) {
      const logits = rows[row]!.logits;
      if (logits === undefined) continue;
      const position = this.#plans.positionOfRow(row);
      // Behind a stop, what guesses would have led to is nobody's.
      if (position + 1 >= sequence.numTokens) return;
      this.#options.hooks.onLogits?.(sequence.group.requestId, sequence.index, position, logits);
    }
  }

  #fail(thrown: unknown): void {
    const cause = OctavoError.from(thrown);
    this.#failure = new OctavoError("engine_failed", `The engine has stopped: ${cause.message}`, {
      cause: thrown,
    });
    this.evidence.abandonStep();
    this.#requests.failAll(this.#failure);
  }

  async #dispose(): Promise<void> {
    this.#isDraining = true;
    this.faults?.close();
    this.#requests.abortAll();
    await this.#requests.whenIdle();
    this.#isStopped = true;
    this.#wake?.();
    await this.#loop;
    this.#journal?.[Symbol.dispose]();
    this.#grammars[Symbol.dispose]();
    this.#speculation?.[Symbol.dispose]();
    this.#cache[Symbol.dispose]();
  }
}

/** Why a request was refused, by what it is told. */
const refusals: Partial<Record<ErrorCode, RefusedRequest["reason"]>> = {
  request_quarantined: "quarantined",
  overloaded: "memory",
};

function eventLoopTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
