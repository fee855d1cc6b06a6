import { asNumber, asObject, asString, type JsonFields } from "@octavo/protocol";
import { performance } from "node:perf_hooks";
import { currentScope, type CallScope } from "../context/using-attributes.js";
import { GapSketch } from "../span/gap-sketch.js";
import type { LlmRequestFacts, LlmSpan, ServerAddress, SpanOutcome, StreamTimes } from "../span/llm-span.js";
import { type TraceContext } from "../span/trace-context.js";
import type { OpenCall, Tracing } from "../tracing.js";
import { type ObservedAnswer, observedAnswerOf } from "./answer.js";
import { type CallKind, operationOf } from "./call-kind.js";
import { type CapturedRequest, capturedRequest } from "./captured-request.js";
import { ContentBudget } from "./content-budget.js";
import { requestFacts } from "./request-facts.js";
import { type StreamedAnswer, streamedAnswer } from "./streamed-answer.js";

const nothing: ObservedAnswer = { response: {}, usage: {}, outputMessages: [], failure: undefined };
const maxMessageLength = 1024;

/**
 * The reader that could still take the answer. The registry holds the call and the stage alone: whatever held the watched object
 * itself would keep it from ever being collected.
 */
type Stage = "answer" | "stream" | "iterator";
const unread = new FinalizationRegistry<{ readonly call: ObservedCall; readonly stage: Stage }>(
  ({ call, stage }) => call.readerCollected(stage),
);

/** One call of a client from its start to its end, which comes exactly once whatever the caller does. */
export class ObservedCall implements OpenCall {
  readonly #tracing: Tracing;
  readonly #scope: CallScope;
  readonly #startMs = performance.now();
  readonly #server: ServerAddress | undefined;
  readonly #parent: TraceContext | undefined;
  #kind: CallKind | undefined;
  #context: TraceContext | undefined;
  #request: LlmRequestFacts = {};
  #asked: CapturedRequest | undefined;
  #http: HttpFacts | undefined;
  #answer: ObservedAnswer | undefined;
  #stream: StreamProgress | undefined;
  #hasEnded = false;
  /** The caller has asked for the parsed answer. */
  isRead = false;
  /** The caller has begun to read the stream. */
  isIterated = false;

  constructor(tracing: Tracing, baseUrl: unknown) {
    this.#tracing = tracing;
    this.#scope = currentScope();
    this.#parent = tracing.activeParent();
    this.#server = serverAddress(baseUrl);
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** Undefined until the call is known to run a model. */
  get context(): TraceContext | undefined {
    return this.#context;
  }

  begin(kind: CallKind, body: JsonFields): TraceContext {
    const { captureContent } = this.#tracing.options;
    this.#kind = kind;
    this.#context = this.#tracing.newContext(this.#parent);
    this.#request = requestFacts(kind, body);
    if (captureContent) this.#asked = capturedRequest(kind, body, this.#newBudget());
    this.#tracing.opened(this);
    return this.#context;
  }

  responded(response: unknown): void {
    const fields = asObject(response);
    const { headers } = fields ?? {};
    this.#http = {
      status: asNumber(fields?.["status"]),
      requestId: headers instanceof Headers ? (headers.get("x-request-id") ?? undefined) : undefined,
    };
  }

  /** A whole answer. */
  answered(body: unknown): void {
    if (this.#kind === undefined) return;
    this.#answer = observedAnswerOf(this.#kind, body, this.#outputBudget());
    this.end(this.#answer.failure ?? { kind: "ok" });
  }

  streamBegins(): void {
    if (this.#kind === undefined) return;
    this.#stream ??= new StreamProgress(this.#startMs, streamedAnswer(this.#kind, this.#outputBudget()));
  }

  chunk(value: unknown): void {
    this.#stream?.chunk(value);
  }

  /** The reader asks for the next chunk. */
  awaitsChunk(): void {
    this.#stream?.awaitsChunk();
  }

  streamEnds(outcome: SpanOutcome): void {
    const answer = this.#stream?.read.answer();
    this.end(outcome.kind === "ok" ? (answer?.failure ?? outcome) : outcome);
  }

  fail(thrown: unknown): void {
    this.end(outcomeOf(thrown));
  }

  abandon(): void {
    this.end({ kind: "abandoned" });
  }

  /** Ends the call when `reader` is collected before the next stage of reading was reached. */
  watchReader(reader: object, stage: Stage): void {
    unread.register(reader, { call: this, stage });
  }

  readerCollected(stage: Stage): void {
    const isPassed = stage === "answer" ? this.isRead : stage === "stream" && this.isIterated;
    if (!isPassed) this.abandon();
  }

  end(outcome: SpanOutcome): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#tracing.ended(this);
    if (this.#context?.isSampled === true && this.#kind !== undefined)
      this.#tracing.record(this.#span(this.#kind, this.#context, outcome));
  }

  #span(kind: CallKind, context: TraceContext, outcome: SpanOutcome): LlmSpan {
    const answer = this.#answer ?? this.#stream?.read.answer() ?? nothing;
    const thrown = "http" in outcome ? (outcome as ThrownOutcome).http : undefined;
    const { status, requestId } = this.#http ?? thrown ?? {};
    return {
      identity: {
        traceId: context.traceId,
        spanId: context.spanId,
        parentSpanId: this.#parent?.spanId,
        traceState: context.traceState,
      },
      side: "client",
      operation: operationOf[kind],
      startEpochMs: performance.timeOrigin + this.#startMs,
      durationMs: performance.now() - this.#startMs,
      outcome: plainOutcome(outcome),
      provider: this.#tracing.options.provider,
      server: this.#server,
      request: this.#request,
      response: {
        ...answer.response,
        ...(status === undefined ? {} : { httpStatus: status }),
        ...(requestId === undefined ? {} : { requestId }),
      },
      usage: answer.usage,
      stream: this.#stream?.times(),
      serving: undefined,
      context: this.#scope.attributes,
      content:
        this.#asked === undefined ? undefined : { ...this.#asked, outputMessages: answer.outputMessages },
    };
  }

  #newBudget(): ContentBudget {
    return new ContentBudget(this.#tracing.options.maxContentCharacters);
  }

  #outputBudget(): ContentBudget | undefined {
    return this.#tracing.options.captureContent ? this.#newBudget() : undefined;
  }
}

/** When the chunks of a stream came. */
class StreamProgress {
  readonly read: StreamedAnswer;
  readonly #startMs: number;
  readonly #gaps = new GapSketch();
  #chunks = 0;
  #firstChunkMs: number | undefined;
  #firstOutputMs: number | undefined;
  #lastOutputMs = 0;
  /** When the reader was last given a chunk. */
  #givenMs: number | undefined;
  #readerMs = 0;

  constructor(startMs: number, read: StreamedAnswer) {
    this.#startMs = startMs;
    this.read = read;
  }

  awaitsChunk(): void {
    if (this.#givenMs === undefined) return;
    this.#readerMs += performance.now() - this.#givenMs;
    this.#givenMs = undefined;
  }

  chunk(value: unknown): void {
    const nowMs = performance.now();
    this.#chunks += 1;
    this.#firstChunkMs ??= nowMs;
    if (this.read.push(value)) {
      if (this.#firstOutputMs === undefined) this.#firstOutputMs = nowMs;
      else this.#gaps.add(nowMs - this.#lastOutputMs);
      this.#lastOutputMs = nowMs;
    }
    this.#givenMs = nowMs;
  }

  times(): StreamTimes {
    const since = (ms: number | undefined): number | undefined =>
      ms === undefined ? undefined : ms - this.#startMs;
    return {
      timeToFirstChunkMs: since(this.#firstChunkMs),
      timeToFirstTokenMs: since(this.#firstOutputMs),
      chunks: this.#chunks,
      gaps: this.#gaps.summary(),
      readerMs: this.#readerMs,
    };
  }
}

function serverAddress(baseUrl: unknown): ServerAddress | undefined {
  if (typeof baseUrl !== "string" || !URL.canParse(baseUrl)) return undefined;
  const { hostname, port, protocol } = new URL(baseUrl);
  const standardPort = protocol === "https:" ? 443 : 80;
  return { host: hostname, port: port === "" ? standardPort : Number(port) };
}

interface HttpFacts {
  readonly status: number | undefined;
  readonly requestId: string | undefined;
}

/** What an error of the client knows of the answer rides on its outcome until the span is made. */
type ThrownOutcome = Extract<SpanOutcome, { readonly errorType: string }> & { readonly http: HttpFacts };

/** `error.type` is the server's code where it gave one, else the class of the error. */
function outcomeOf(thrown: unknown): SpanOutcome {
  const fields = asObject(thrown) ?? {};
  const name = thrown instanceof Error ? thrown.constructor.name || thrown.name : typeof thrown;
  const isAbort =
    name === "APIUserAbortError" || name === "AbortError" || asString(fields["name"]) === "AbortError";
  const message = thrown instanceof Error ? thrown.message.slice(0, maxMessageLength) : undefined;
  const outcome: ThrownOutcome = {
    kind: isAbort ? "aborted" : "error",
    errorType: asString(fields["code"]) ?? asString(fields["type"]) ?? name,
    message,
    http: { status: asNumber(fields["status"]), requestId: asString(fields["requestID"]) },
  };
  return outcome;
}

function plainOutcome(outcome: SpanOutcome): SpanOutcome {
  if (outcome.kind !== "error" && outcome.kind !== "aborted") return outcome;
  const { kind, errorType, message } = outcome;
  return { kind, errorType, message };
}
