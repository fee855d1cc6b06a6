import { setTimeout as sleep } from "node:timers/promises";
import type {
  HotPrefix,
  EmbeddingRequest,
  Engine,
  EngineObserver,
  EngineStats,
  Evidence,
  FaultControl,
  FinishReason,
  GenerationEvent,
  GenerationRequest,
  Grammar,
  GrammarSpec,
  Neighbours,
  SequenceDelta,
  ServingRecord,
  TokenLogprob,
  Usage,
} from "@octavo/engine";
import { GrammarCompiler } from "@octavo/engine/parts";
import { plainServingRecord } from "@octavo/engine/testing";
import { OctavoError } from "@octavo/protocol";
import type { ByteTokenizer } from "@octavo/text/testing/byte-tokenizer";

const stepComputeMs = 1;

/** How the fake behaves; tests change it between requests. */
export interface FakeBehaviour {
  /** Text that sequence `index` answers a prompt with. */
  reply(prompt: string, index: number): string;
  /** Wait before each step. */
  stepDelayMs: number;
  tokensPerStep: number;
  cachedTokens: number;
  /** Thrown by `generate` at once. */
  refuseWith: OctavoError | undefined;
  /** Thrown after so many steps. */
  failAfterSteps: { readonly steps: number; readonly error: Error } | undefined;
}

/** Answers by script, one token per byte, with made-up but repeatable logprobs; counts what it was asked and told. */
export class FakeEngine implements Engine {
  readonly maxModelLen: number;
  readonly requests: GenerationRequest[] = [];
  readonly embeddings: EmbeddingRequest[] = [];
  /** Requests that ended because their signal aborted or their reader left. */
  readonly aborted: string[] = [];
  readonly behaviour: FakeBehaviour;
  readonly #records = new Map<string, ServingRecord>();
  readonly evidence: Evidence = {
    steps: [],
    step: () => undefined,
    neighbours: (requestId) => (this.#records.has(requestId) ? this.neighbours : undefined),
    request: (requestId) => {
      const record = this.#records.get(requestId);
      return (
        record && { requestId, tenant: "default", isOver: true, record, firstToken: undefined, slowGaps: [] }
      );
    },
  };
  failure: OctavoError | undefined;
  faults: FaultControl | undefined;
  /** Reported for every finished request. */
  neighbours: Neighbours | undefined;
  readonly #tokenizer: ByteTokenizer;
  readonly #observers = new Set<EngineObserver>();
  readonly #grammars: GrammarCompiler;
  readonly #running = new Set<string>();
  readonly #waiters = new Set<() => void>();
  #draining = false;
  #drained = new AbortController();
  #step = 0;

  constructor(tokenizer: ByteTokenizer, maxModelLen: number, behaviour: FakeBehaviour) {
    this.#tokenizer = tokenizer;
    this.#grammars = new GrammarCompiler(tokenizer, {
      vocabSize: tokenizer.vocabSize,
      onCompiled: (seconds, cached) => {
        for (const observer of this.#observers) observer.onGrammarCompiled?.(seconds, cached);
      },
    });
    this.maxModelLen = maxModelLen;
    this.behaviour = behaviour;
  }

  /** What the next answers say. */
  queueDepth = 0;

  get stats(): EngineStats {
    const running = this.#running.size;
    return {
      running,
      waiting: 0,
      oldestWaitingMs: 0,
      kvCacheUsage: running / 100,
      blockSize: 16,
      totalBlocks: 100,
      freeBlocks: 100 - running,
      cachedBlocks: 0,
    };
  }

  generate(request: GenerationRequest, signal?: AbortSignal): AsyncIterable<GenerationEvent> {
    if (this.failure !== undefined) throw this.failure;
    if (this.#draining) throw new OctavoError("shutting_down", "the engine is draining");
    if (this.behaviour.refuseWith !== undefined) throw this.behaviour.refuseWith;
    this.requests.push(request);
    this.#running.add(request.requestId);
    for (const observer of this.#observers)
      observer.onPrefixLookup?.(request.promptTokens.length, this.behaviour.cachedTokens);
    return this.#run(request, signal);
  }

  embed(request: EmbeddingRequest): Promise<{ readonly embedding: Float32Array; readonly usage: Usage }> {
    this.embeddings.push(request);
    const { requestId, owner } = request;
    for (const observer of this.#observers) observer.onSettled?.({ requestId, owner, kernelMs: 0 });
    const embedding = Float32Array.from(
      { length: 8 },
      (_, index) => (index + request.promptTokens.length) / 16,
    );
    return Promise.resolve({
      embedding,
      usage: { promptTokens: request.promptTokens.length, completionTokens: 0, cachedTokens: 0 },
    });
  }

  /** Constraints are compiled for real, and do not bind the scripted answers. */
  compileGrammar(spec: GrammarSpec, signal?: AbortSignal, tenant?: string): Promise<Grammar> {
    return this.#grammars.compile(spec, signal, tenant);
  }

  observe(observer: EngineObserver): Disposable {
    this.#observers.add(observer);
    return { [Symbol.dispose]: () => void this.#observers.delete(observer) };
  }

  async drain(deadlineMs: number): Promise<void> {
    this.#draining = true;
    const idle = new Promise<void>((resolve) =>
      this.#running.size === 0 ? resolve() : this.#waiters.add(resolve),
    );
    await Promise.race([idle, sleep(deadlineMs, undefined, { ref: false })]);
    this.#drained.abort();
  }

  hotPrefixes(): readonly HotPrefix[] {
    return [];
  }

  resetPrefixCache(): boolean {
    return true;
  }

  /** Resolves when nothing runs. */
  async whenIdle(): Promise<void> {
    while (this.#running.size > 0) await sleep(1);
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#grammars[Symbol.dispose]();
    return Promise.resolve();
  }

  async *#run(request: GenerationRequest, signal?: AbortSignal): AsyncGenerator<GenerationEvent> {
    const { params, promptTokens } = request;
    const startMs = performance.now();
    const sequences = Array.from(
      { length: params.n },
      (_, index) => new FakeSequence(this.#tokenizer, request, this.behaviour, index),
    );
    let isComplete = false;
    let steps = 0;
    try {
      if (params.promptLogprobs !== undefined)
        yield { kind: "prompt", promptLogprobs: promptLogprobs(promptTokens, params.promptLogprobs) };
      while (sequences.some((sequence) => sequence.finishReason === undefined)) {
        if (this.behaviour.stepDelayMs > 0)
          await waitUnlessAborted(this.behaviour.stepDelayMs, signal, this.#drained.signal);
        if (signal?.aborted === true) throw OctavoError.from(signal.reason);
        if (this.behaviour.failAfterSteps !== undefined && steps >= this.behaviour.failAfterSteps.steps)
          throw this.behaviour.failAfterSteps.error;
        const deltas = sequences.flatMap((sequence) => sequence.step(this.#drained.signal.aborted));
        this.#report(request, deltas, steps === 0 ? promptTokens.length : 0, startMs);
        steps++;
        yield { kind: "delta", deltas };
      }
      const completionTokens = sequences.reduce((total, sequence) => total + sequence.numTokens, 0);
      const usage = {
        promptTokens: promptTokens.length,
        completionTokens,
        cachedTokens: this.behaviour.cachedTokens,
      };
      const elapsedMs = performance.now() - startMs;
      const record = {
        ...plainServingRecord,
        kernelMs: steps * stepComputeMs,
        decodeMs: elapsedMs,
        e2eMs: elapsedMs,
        cachedTokens: usage.cachedTokens,
      };
      this.#records.set(request.requestId, record);
      isComplete = true;
      const reasons = sequences.map((sequence) => sequence.finishReason ?? "abort");
      for (const observer of this.#observers) {
        observer.onFinished?.({
          requestId: request.requestId,
          owner: request.owner,
          tenant: request.account?.tenant ?? "default",
          lane: request.account?.lane ?? 0,
          reasons,
          usage,
          record,
          n: params.n,
          maxTokens: params.maxTokens,
        });
      }
      yield {
        kind: "done",
        usage,
        record,
        ...(request.wantLogitsDigests === true && {
          logitsDigests: sequences.map((sequence) => sequence.digests),
        }),
      };
    } finally {
      if (!isComplete) this.aborted.push(request.requestId);
      const { requestId, owner } = request;
      for (const observer of this.#observers)
        observer.onSettled?.({ requestId, owner, kernelMs: steps * stepComputeMs });
      this.#running.delete(request.requestId);
      if (this.#running.size === 0) for (const waiter of this.#waiters) waiter();
    }
  }

  #report(
    { requestId, account }: GenerationRequest,
    deltas: readonly SequenceDelta[],
    prefillTokens: number,
    startMs: number,
  ): void {
    const now = performance.now();
    const name = { requestId, tenant: account?.tenant ?? "default" };
    const tokens = deltas.reduce((total, delta) => total + delta.tokens.length, 0);
    const decodeTokens = prefillTokens > 0 ? 0 : tokens;
    const record = {
      step: this.#step++,
      startMs: now,
      durationMs: 2,
      computeMs: stepComputeMs,
      prefillMs: prefillTokens > 0 ? stepComputeMs : 0,
      numSequences: deltas.length,
      prefillTokens,
      decodeTokens,
      generatedTokens: tokens,
      blocksUsed: this.#running.size,
      blocksEvicted: 0,
      preemptions: 0,
    };
    for (const observer of this.#observers) {
      observer.onStep?.(record);
      if (prefillTokens > 0) observer.onFirstToken?.(name, now - startMs);
      else observer.onInterToken?.(name, 20);
    }
  }
}

class FakeSequence {
  finishReason: FinishReason | undefined;
  numTokens = 0;
  readonly #tokens: Int32Array;
  readonly #detokenizer;
  readonly #request: GenerationRequest;
  readonly #index: number;
  readonly #tokensPerStep: number;

  constructor(tokenizer: ByteTokenizer, request: GenerationRequest, behaviour: FakeBehaviour, index: number) {
    this.#request = request;
    this.#index = index;
    this.#tokensPerStep = behaviour.tokensPerStep;
    const reply = behaviour.reply(tokenizer.decode(request.promptTokens), index);
    this.#tokens = tokenizer.encode(reply, { addSpecialTokens: false });
    const { skipSpecialTokens, keptSpecialTokens } = request.params;
    this.#detokenizer = tokenizer.createDetokenizer({
      skipSpecialTokens,
      ...(keptSpecialTokens === undefined ? {} : { keptSpecialTokens }),
    });
  }

  /** Digest of each token so far: the token itself. */
  get digests(): readonly string[] {
    return Array.from(this.#tokens.slice(0, this.numTokens), (token) => token.toString(16).padStart(16, "0"));
  }

  step(isDrained: boolean): readonly SequenceDelta[] {
    if (this.finishReason !== undefined) return [];
    const limit = Math.min(this.#tokens.length, this.#request.params.maxTokens ?? Number.POSITIVE_INFINITY);
    const tokens = Array.from(
      this.#tokens.slice(this.numTokens, Math.min(limit, this.numTokens + this.#tokensPerStep)),
    );
    const firstPosition = this.numTokens;
    this.numTokens += tokens.length;
    let text = tokens.map((token) => this.#detokenizer.push(token)).join("");
    if (isDrained) this.finishReason = "abort";
    else if (this.numTokens >= this.#tokens.length) this.finishReason = "stop";
    else if (this.numTokens >= limit) this.finishReason = "length";
    if (this.finishReason !== undefined) text += this.#detokenizer.flush();
    const { logprobs } = this.#request.params;
    return [
      {
        index: this.#index,
        text,
        tokens,
        logprobs:
          logprobs === undefined
            ? undefined
            : tokens.map((token, at) => fakeLogprob(token, firstPosition + at, logprobs)),
        finishReason: this.finishReason,
        stopReason: undefined,
      },
    ];
  }
}

/** The chosen token leads; alternatives are its successors in the vocabulary. */
export function fakeLogprob(token: number, position: number, count: number): TokenLogprob {
  const logprob = -0.25 - (position % 4) / 8;
  const top = Array.from({ length: count }, (_, rank) => ({
    token: (token + rank) % 256,
    logprob: logprob - rank,
  }));
  return { token, logprob, rank: 1, top };
}

function promptLogprobs(tokens: Int32Array, count: number): readonly (TokenLogprob | undefined)[] {
  return Array.from(tokens, (token, position) =>
    position === 0 ? undefined : fakeLogprob(token, position, count),
  );
}

async function waitUnlessAborted(
  delayMs: number,
  ...signals: readonly (AbortSignal | undefined)[]
): Promise<void> {
  await new Promise<void>((resolve) => {
    const finish = (): void => {
      clearTimeout(timer);
      for (const signal of signals) signal?.removeEventListener("abort", finish);
      resolve();
    };
    const timer = setTimeout(finish, delayMs);
    for (const signal of signals) signal?.addEventListener("abort", finish);
    if (signals.some((signal) => signal?.aborted === true)) finish();
  });
}
