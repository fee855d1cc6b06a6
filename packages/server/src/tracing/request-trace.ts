import type { FinishedRequest } from "@octavo/engine";
import { type LlmOperation, type LlmRequestFacts, requestFacts, type TraceContext } from "@octavo/tracing";

/** What becomes a span: filled while a request is answered, by whoever knows the fact. */
export class RequestTrace {
  readonly context: TraceContext;
  readonly parentSpanId: string | undefined;
  readonly #byEngineId: Map<string, RequestTrace>;
  /** Requests that the engine still works for. */
  readonly #pending = new Set<string>();
  readonly finished: FinishedRequest[] = [];
  #isReleased = false;
  request: LlmRequestFacts = {};
  userId: string | undefined;
  responseId: string | undefined;
  /** Called when the engine is done with a request of this trace. */
  onEngineSettled: (() => void) | undefined;

  constructor(
    context: TraceContext,
    parentSpanId: string | undefined,
    byEngineId: Map<string, RequestTrace>,
  ) {
    this.context = context;
    this.parentSpanId = parentSpanId;
    this.#byEngineId = byEngineId;
  }

  /** Whether the engine still works for it. */
  get isRunning(): boolean {
    return this.#pending.size > 0;
  }

  /** Takes what a request body says of itself. Nothing of its content is kept. */
  describe(body: object): void {
    const fields: Readonly<Record<string, unknown>> = { ...body };
    this.request = requestFacts("encoding_format" in fields ? "embeddings" : "chat", fields);
    if (typeof fields["user"] === "string") this.userId = fields["user"].slice(0, 128);
  }

  /** The id that the answer carries. */
  answersAs(responseId: string): void {
    this.responseId = responseId;
  }

  /** A request of the engine that is made for this one. */
  adopt(engineRequestId: string): void {
    if (this.#isReleased) return;
    this.#pending.add(engineRequestId);
    this.#byEngineId.set(engineRequestId, this);
  }

  engineFinished(request: FinishedRequest): void {
    this.finished.push(request);
  }

  /** Nothing more is computed for one of its requests. */
  engineSettled(engineRequestId: string): void {
    this.#leave(engineRequestId);
  }

  /** The engine refused a request, or it failed: one that finished is settled by itself. */
  disown(engineRequestId: string): void {
    if (!this.finished.some(({ requestId }) => requestId === engineRequestId)) this.#leave(engineRequestId);
  }

  /** Forgets the engine's requests, whether they ended or not; later ones are none of its. */
  release(): void {
    this.#isReleased = true;
    for (const id of this.#pending) this.#byEngineId.delete(id);
  }

  #leave(engineRequestId: string): void {
    this.#byEngineId.delete(engineRequestId);
    if (this.#pending.delete(engineRequestId)) this.onEngineSettled?.();
  }
}

/** How each endpoint's call is named; every other endpoint runs no model. */
export const operationsByRoute: ReadonlyMap<string, LlmOperation> = new Map([
  ["/v1/chat/completions", "chat"],
  ["/v1/chat/completions/batch", "chat"],
  ["/v1/responses", "chat"],
  ["/v1/messages", "chat"],
  ["/v1/completions", "text_completion"],
  ["/v1/embeddings", "embeddings"],
  ["/score", "rerank"],
  ["/v1/score", "rerank"],
  ["/rerank", "rerank"],
  ["/v1/rerank", "rerank"],
  ["/v2/rerank", "rerank"],
]);

/**
 * The signal of an exchange is what every layer below it is given, so it names the exchange's trace. An
 * `AsyncLocalStorage` would too, but on Node 20 it slows every promise of the process.
 */
const traces = new WeakMap<AbortSignal, RequestTrace>();

export function bindTrace(signal: AbortSignal, trace: RequestTrace): void {
  traces.set(signal, trace);
}

/** Undefined when tracing is off or the request is not sampled. */
export function traceOf(signal: AbortSignal): RequestTrace | undefined {
  return traces.get(signal);
}
