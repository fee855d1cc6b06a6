import type { RowResult, RowSampling } from "@octavo/kernels";
import type {
  FinishedRequest,
  FinishReason,
  GenerationEvent,
  GenerationRequest,
  ServingRecord,
  TokenLogprob,
  Usage,
} from "../api.js";
import { OctavoError } from "@octavo/protocol/errors";
import { sequenceSeed } from "../sampling/seeds.js";
import { Sequence } from "../scheduler/sequence.js";
import type { Tokenizer } from "@octavo/text/tokenizer/tokenizer";
import { ActiveRequest, type EngineContext, type RowSink } from "./active-request.js";
import { EventChannel, type PendingDelta } from "./event-channel.js";
import { type Ending, SequenceOutput } from "./sequence-output.js";
import { GrammarConstraint } from "../constraints/grammar-constraint.js";
import { SampleRows } from "../step/sample-rows.js";
import { ThinkingLimit } from "../constraints/thinking-limit.js";
import type { TokenConstraint } from "../constraints/token-constraint.js";
import { checkTokenRow, logitsDigest, tokenLogprob } from "../step/token-logprob.js";

/** Forced tokens appended at a time: each costs a mask, while all other requests wait. */
const maxForced = 64;

/** Per-sequence state of a generation; outlives preemption, so nothing is counted or delivered twice. */
interface Stream {
  readonly output: SequenceOutput;
  readonly rows: SampleRows;
  readonly constraint: TokenConstraint | undefined;
  /** Digests of the logits of each output token, if requested. */
  readonly digests: string[];
  finishReason: FinishReason | undefined;
  /** Scored prompt tokens in the step in flight. */
  numScoreRows: number;
  samples: boolean;
}

/** A generation request in the engine: n sequences, their sampling, their ends and their events. */
export class GenerationTask extends ActiveRequest {
  override readonly sequences: readonly Sequence[];
  readonly events: EventChannel;
  readonly #context: EngineContext;
  readonly #request: GenerationRequest;
  readonly #badWords: readonly Int32Array[];
  readonly #stopTokenIds: ReadonlySet<number>;
  readonly #streams: readonly Stream[];
  readonly #numPromptLogprobs: number | undefined;
  readonly #promptLogprobs: (TokenLogprob | undefined)[];
  #isPromptDelivered = false;
  #done: (GenerationEvent & { kind: "done" }) | undefined;

  constructor(
    request: GenerationRequest,
    order: number,
    context: EngineContext,
    tokenizer: Tokenizer,
    onReaderLeft: (task: GenerationTask) => void,
  ) {
    super(request, order, context.evidence);
    const { params } = request;
    // One copy for all sequences, which the caller can no longer change.
    const promptTokens = request.promptTokens.slice();
    this.#context = context;
    this.#request = { ...request, promptTokens };
    this.events = new EventChannel(
      () => onReaderLeft(this),
      (lagMs) => {
        this.timeline.readerLagMs += lagMs;
      },
    );
    this.#badWords = context.badWordsOf(params.badWords);
    this.#stopTokenIds = new Set(params.stopTokenIds);
    this.#numPromptLogprobs = params.promptLogprobs === -1 ? context.vocabSize : params.promptLogprobs;
    this.#promptLogprobs = Array.from({ length: request.promptLogprobsFrom ?? 1 }, () => undefined);
    const stops = params.stop.length === 0 ? undefined : context.stopAutomatonOf(params.stop);
    const seed = params.seed ?? context.nextSeed();
    this.sequences = Array.from({ length: params.n }, (_, index) => new Sequence(this, index, promptTokens));
    this.#streams = this.sequences.map((_, index) => ({
      output: new SequenceOutput(index, params, tokenizer, promptTokens, stops),
      rows: new SampleRows(
        params,
        sequenceSeed(seed, index),
        context.vocabSize,
        request.wantLogitsDigests === true,
      ),
      constraint: this.#constraint(tokenizer),
      digests: [],
      finishReason: undefined,
      numScoreRows: 0,
      samples: false,
    }));
    const first = this.sequences[0];
    if (first !== undefined && this.#awaitsPromptLogprobs) first.firstWantedRow = this.#numScored;
    if (first !== undefined && request.emittedTokens !== undefined)
      this.#replay(first, request.emittedTokens);
  }

  override prepare(sequence: Sequence): void {
    const { params } = this.#request;
    this.#stream(sequence).constraint?.prepare();
    const suppressible = params.minTokens > 0 ? [...this.#context.eosTokenIds, ...params.stopTokenIds] : [];
    const isPlain =
      params.repetitionPenalty === 1 &&
      params.frequencyPenalty === 0 &&
      params.presencePenalty === 0 &&
      params.logitBias === undefined &&
      params.allowedTokenIds === undefined &&
      this.#badWords.length === 0 &&
      suppressible.length === 0;
    if (isPlain) return;
    const { logitBias, allowedTokenIds } = params;
    this.#stream(sequence).rows.state = this.#context.backend.createSamplerState({
      promptTokens: sequence.tokens.slice(0, sequence.numPromptTokens),
      outputTokens: sequence.tokens.slice(sequence.numPromptTokens),
      repetitionPenalty: params.repetitionPenalty,
      frequencyPenalty: params.frequencyPenalty,
      presencePenalty: params.presencePenalty,
      ...(logitBias !== undefined && {
        logitBias: { ids: Int32Array.from(logitBias.keys()), values: Float32Array.from(logitBias.values()) },
      }),
      ...(allowedTokenIds !== undefined && { allowedTokens: Int32Array.from(new Set(allowedTokenIds)) }),
      ...(this.#badWords.length > 0 && { badWords: this.#badWords }),
      ...(suppressible.length > 0 && { stopTokens: Int32Array.from(new Set(suppressible)) }),
    });
  }

  override prepareMask(sequence: Sequence): boolean {
    return this.#stream(sequence).constraint?.prepareInTurn() ?? true;
  }

  override draftLimit(sequence: Sequence): number {
    const isComputed = sequence.numComputed + sequence.numScheduled === sequence.numTokens;
    if (!isComputed || sequence.numOutputTokens === 0) return 0;
    const { maxTokens = Number.POSITIVE_INFINITY } = this.#request.params;
    // Another token is sampled behind the last draft token.
    return Math.min(this.#context.maxModelLen - sequence.numTokens, maxTokens - sequence.numOutputTokens) - 1;
  }

  override samplingOf(sequence: Sequence): RowSampling {
    return this.#stream(sequence).rows.sampling;
  }

  override cutDraft(sequence: Sequence): void {
    const { draft } = sequence;
    for (let index = 0; index < draft.length; index += 1)
      if (this.#stops(draft.at(index))) draft.truncate(index);
    this.#stream(sequence).constraint?.cutDraft(draft);
  }

  override addRows(sequence: Sequence, rows: RowSink): void {
    const stream = this.#stream(sequence);
    const end = sequence.numComputed + sequence.numScheduled;
    stream.numScoreRows = 0;
    if (sequence.index === 0 && this.#awaitsPromptLogprobs) {
      const numLogprobs = this.#numPromptLogprobs ?? 0;
      const lastScored = Math.min(end, sequence.numPromptTokens - 1);
      for (
        let position = Math.max(sequence.numComputed, this.#numScored);
        position < lastScored;
        position += 1
      ) {
        rows.addRow(position, { kind: "score", target: sequence.tokens.at(position + 1), numLogprobs });
        stream.numScoreRows += 1;
      }
    }
    stream.samples = end === sequence.numTokens;
    if (!stream.samples) return;
    for (let ahead = 0; ahead <= sequence.draft.length; ahead += 1) {
      const index = sequence.numOutputTokens + ahead;
      rows.addRow(end - 1 + ahead, stream.rows.at(ahead, index, stream.constraint?.maskAfter(ahead)));
    }
  }

  override applyRows(
    sequence: Sequence,
    results: readonly RowResult[],
    start: number,
    end: number,
    nowMs: number,
  ): boolean {
    const stream = this.#stream(sequence);
    const endOfScored = start + stream.numScoreRows;
    for (let row = start; row < endOfScored; row += 1) {
      checkTokenRow(results[row]!, this.#context.vocabSize);
      this.#promptLogprobs.push(tokenLogprob(results[row]!, undefined));
    }
    if (stream.numScoreRows > 0) {
      sequence.firstWantedRow = this.#awaitsPromptLogprobs ? this.#numScored : Number.POSITIVE_INFINITY;
    }
    if (!stream.samples) return false;
    for (let row = endOfScored; row < end; row += 1) {
      const sampled = results[row]!;
      checkTokenRow(sampled, this.#context.vocabSize);
      if (row === endOfScored) this.#noteOutput(sequence, nowMs);
      if (this.#accept(sequence, stream, sampled)) return true;
      const ahead = row - endOfScored;
      if (ahead === sequence.draft.length || sampled.token !== sequence.draft.at(ahead)) break;
    }
    // Not while planning the next step: a failure there would stop the engine.
    return this.prepareMask(sequence) && this.#takeForced(sequence, stream);
  }

  override release(sequence: Sequence): void {
    this.#stream(sequence).rows.state?.[Symbol.dispose]();
  }

  override deliver(): void {
    const isOver = this.#done !== undefined;
    if (this.#numPromptLogprobs !== undefined && !this.#isPromptDelivered) {
      if (!this.#awaitsPromptLogprobs) {
        this.#isPromptDelivered = true;
        this.events.pushPrompt({ kind: "prompt", promptLogprobs: this.#promptLogprobs });
      } else if (!isOver) return;
    }
    let deltas: PendingDelta[] | undefined;
    for (const stream of this.#streams) {
      const delta = stream.output.take();
      if (delta === undefined) continue;
      if (deltas === undefined) deltas = [delta];
      else deltas.push(delta);
    }
    if (deltas !== undefined) this.events.pushDeltas(deltas);
    if (this.#done !== undefined) this.events.close(this.#done);
  }

  protected override conclude(
    isAborted: boolean,
    usage: Usage,
    record: ServingRecord,
  ): Pick<FinishedRequest, "reasons" | "n" | "maxTokens"> {
    for (const stream of this.#streams) {
      if (isAborted && stream.finishReason === undefined) {
        stream.finishReason = "abort";
        stream.output.end("abort");
      }
    }
    this.#done = {
      kind: "done",
      usage,
      record,
      ...(this.#request.wantLogitsDigests === true && {
        logitsDigests: this.#streams.map(({ digests }) => digests),
      }),
    };
    const { n, maxTokens } = this.#request.params;
    return { reasons: this.#streams.map((stream) => stream.finishReason ?? "abort"), n, maxTokens };
  }

  protected override reject(error: OctavoError): void {
    this.deliver();
    this.events.fail(error);
  }

  /** Prompt tokens whose prediction has been scored; that of the last prompt token is sampled instead. */
  get #numScored(): number {
    return this.#promptLogprobs.length - 1;
  }

  get #awaitsPromptLogprobs(): boolean {
    return (
      this.#numPromptLogprobs !== undefined && this.#promptLogprobs.length < this.#request.promptTokens.length
    );
  }

  #stream(sequence: Sequence): Stream {
    return this.#streams[sequence.index]!;
  }

  /** Tokens of one step count once: gaps are those that a reader sees. */
  #noteOutput(sequence: Sequence, nowMs: number): void {
    const { observers, evidence } = this.#context;
    const { timeline } = this;
    if (timeline.firstTokenMs === undefined)
      observers.notify("onFirstToken", this, nowMs - timeline.arrivalMs);
    const gapMs = timeline.noteOutput(sequence.index, evidence.currentStep, nowMs);
    if (gapMs !== undefined) observers.notify("onInterToken", this, gapMs);
  }

  /** Appends a token; returns whether the sequence is complete. */
  #accept(sequence: Sequence, stream: Stream, sampled: RowResult): boolean {
    sequence.tokens.push(sampled.token);
    if (stream.rows.wantDigest) stream.digests.push(logitsDigest(sampled));
    const { logprobTokenIds } = this.#request.params;
    const logprob = stream.rows.wantLogprobs ? tokenLogprob(sampled, logprobTokenIds) : undefined;
    const ending = stream.output.accept(
      sampled.token,
      logprob,
      this.#constrainedEnding(sequence, stream, sampled.token),
    );
    stream.finishReason = ending?.finishReason;
    return ending !== undefined;
  }

  /**
   * Appends the tokens that the constraint forces: sampling could give no others, so the next step computes them together
   * instead of one step each. Returns whether the sequence is complete.
   */
  #takeForced(sequence: Sequence, stream: Stream): boolean {
    const { constraint, rows } = stream;
    if (constraint === undefined || rows.wantLogprobs || rows.wantDigest || rows.state !== undefined)
      return false;
    for (let taken = 0; taken < maxForced; taken += 1) {
      const token = constraint.forcedToken;
      if (token === undefined) break;
      sequence.tokens.push(token);
      const ending = stream.output.accept(token, undefined, this.#constrainedEnding(sequence, stream, token));
      stream.finishReason = ending?.finishReason;
      if (ending !== undefined) return true;
      if (!constraint.prepareInTurn()) break;
    }
    return false;
  }

  /** Takes output that was generated elsewhere. Throws `invalid_request` for tokens that could not have been. */
  #replay(sequence: Sequence, tokens: Int32Array): void {
    const stream = this.#stream(sequence);
    for (const [at, token] of tokens.entries()) {
      sequence.tokens.push(token);
      let ending: Ending | undefined;
      let cause: unknown;
      try {
        ending = stream.output.accept(token, undefined, this.#constrainedEnding(sequence, stream, token));
      } catch (thrown) {
        cause = thrown;
      }
      if (ending === undefined && cause === undefined) continue;
      const why = cause === undefined ? "ends the output" : "is not allowed by the request's output format";
      throw new OctavoError(
        "invalid_request",
        `emitted_token_ids[${at}] ${why}; leave it and what follows out`,
        {
          param: "octavo.emitted_token_ids",
          cause,
        },
      );
    }
  }

  #constraint(tokenizer: Tokenizer): TokenConstraint | undefined {
    const { thinking } = this.#request;
    const grammar = this.#grammarConstraint();
    if (thinking === undefined) return grammar;
    const detokenizer = tokenizer.createDetokenizer({ skipSpecialTokens: false });
    return new ThinkingLimit(thinking, detokenizer, this.#context.vocabSize, grammar);
  }

  #grammarConstraint(): GrammarConstraint | undefined {
    const { grammar, params } = this.#request;
    if (grammar === undefined) return undefined;
    const ends = params.ignoreEos ? [] : this.#context.eosTokenIds;
    return new GrammarConstraint(grammar, new Set([...ends, ...this.#stopTokenIds]));
  }

  /** As `#ending`; also ends where the constraint allows no further text. */
  #constrainedEnding(sequence: Sequence, stream: Stream, token: number): Ending | undefined {
    const ending = this.#ending(sequence, token);
    const { constraint } = stream;
    if (constraint === undefined || ending?.finishReason === "stop") return ending;
    constraint.accept(token);
    return constraint.isFinished
      ? { finishReason: "stop", stopReason: undefined, hidesToken: false }
      : ending;
  }

  /** Whether a token ends the sequence once it has `minTokens`. */
  #stops(token: number): boolean {
    const endsText = !this.#request.params.ignoreEos && this.#context.eosTokenIds.has(token);
    return endsText || this.#stopTokenIds.has(token);
  }

  #ending(sequence: Sequence, token: number): Ending | undefined {
    const { params } = this.#request;
    const { eosTokenIds, maxModelLen } = this.#context;
    const { numOutputTokens } = sequence;
    if (numOutputTokens >= params.minTokens) {
      const hidesToken = !params.includeStopStrInOutput;
      if (!params.ignoreEos && eosTokenIds.has(token))
        return { finishReason: "stop", stopReason: undefined, hidesToken };
      if (this.#stopTokenIds.has(token)) return { finishReason: "stop", stopReason: token, hidesToken };
    }
    const isFull =
      sequence.numTokens >= maxModelLen ||
      (params.maxTokens !== undefined && numOutputTokens >= params.maxTokens);
    return isFull ? { finishReason: "length", stopReason: undefined, hidesToken: false } : undefined;
  }
}
