import type { IncomingHttpHeaders } from "node:http";
import { performance } from "node:perf_hooks";
import type { Engine } from "@octavo/engine";
import {
  type Attributes,
  childContext,
  formatTraceParent,
  type LlmOperation,
  type LlmSpan,
  parseTraceContext,
  type ServerAddress,
  type SinkCounts,
  type SpanOutcome,
  type SpanSink,
  type TraceContext,
} from "@octavo/tracing";
import type { ErrorCode } from "@octavo/protocol";
import { type ContentPolicy, isContentSampled } from "./content-capture.js";
import type { RequestAccount, RequestTrace } from "./request-account.js";
import { requestUsage, servingFacts } from "./serving-facts.js";

export interface TracedModel {
  readonly engine: Engine;
  readonly quantization: string | undefined;
  readonly modelName: string;
}

export interface ServerTracingOptions {
  readonly sinks: readonly SpanSink[];
  readonly sampleRatio: number;
  /** The model that requests of this name are for. */
  readonly modelOf: (name: string | undefined) => TracedModel;
  readonly engineVersion: string;
  readonly replicaId: string | undefined;
  /** Attributes of every span. */
  readonly attributes: Attributes;
  readonly server: ServerAddress | undefined;
  /** Undefined: no span has content. */
  readonly content: ContentPolicy | undefined;
}

/** The part of an exchange that its span needs. */
export interface TracedExchange {
  readonly account: RequestAccount;
  /** Undefined for an endpoint that runs no model. */
  readonly operation: LlmOperation | undefined;
  readonly requestId: string;
  /** The id of the engine's evidence. */
  readonly octavoId: string;
  readonly arrivalMs: number;
  readonly errorCode: ErrorCode | undefined;
  readonly httpStatus: number;
  readonly isStream: boolean;
}

/** How long a span waits for the engine to settle its requests after the client left. */
const abortGraceMs = 2000;

/** The reply to `traceparent`, of the level 2 draft of W3C Trace Context. */
export const traceResponseHeader = "traceresponse";

export function traceResponse(context: TraceContext): string {
  return formatTraceParent(context);
}

/** Makes one span for every request that runs the model. */
export class ServerTracing {
  readonly #options: ServerTracingOptions;
  /** Spans of requests that are over for their clients but not settled in the engine. */
  readonly #late = new Set<() => void>();

  constructor(options: ServerTracingOptions) {
    this.#options = options;
  }

  get counts(): readonly SinkCounts[] {
    return this.#options.sinks.map((sink) => sink.counts);
  }

  /** Undefined if the trace is not sampled. Without a valid context in the headers a new trace begins. */
  begin(headers: IncomingHttpHeaders): RequestTrace | undefined {
    const parent = parseTraceContext(headers.traceparent, headers.tracestate);
    const context = childContext(parent, this.#options.sampleRatio);
    if (!context.isSampled) return undefined;
    const { content } = this.#options;
    const hasContent = content !== undefined && isContentSampled(context.traceId, content.sampleRatio);
    return { context, parentSpanId: parent?.spanId, ...(hasContent && { content }) };
  }

  /** Records the span of an exchange that is over, once its engine requests have settled. */
  finish(exchange: TracedExchange): void {
    const { account, operation } = exchange;
    const { trace } = account;
    if (trace === undefined || operation === undefined) return;
    const endMs = performance.now();
    let timer: NodeJS.Timeout | undefined;
    const record = (): void => {
      if (!this.#late.delete(record)) return;
      clearTimeout(timer);
      const span = this.#span(trace, operation, exchange, endMs);
      for (const sink of this.#options.sinks) sink.add(span);
    };
    this.#late.add(record);
    if (account.outlivesAnswer) record();
    else account.whenSettled(record);
    if (this.#late.has(record)) timer = setTimeout(record, abortGraceMs).unref();
  }

  async close(deadlineMs: number): Promise<void> {
    for (const record of this.#late) record();
    await Promise.all(this.#options.sinks.map((sink) => sink.close(deadlineMs)));
  }

  #span(trace: RequestTrace, operation: LlmOperation, exchange: TracedExchange, endMs: number): LlmSpan {
    const { context } = trace;
    const {
      tenant,
      feature,
      computeMs,
      finished,
      facts,
      responseId,
      spanUserId: userId,
      ownerId,
    } = exchange.account;
    const { server } = this.#options;
    const attributes = { ...this.#options.attributes, ...refusedFacts(exchange.account) };
    const model = this.#options.modelOf(exchange.account.model);
    const { modelName } = model;
    const { arrivalMs, httpStatus, requestId } = exchange;
    const reasons = finished.flatMap((each) => each.reasons);
    return {
      identity: {
        traceId: context.traceId,
        spanId: context.spanId,
        parentSpanId: trace.parentSpanId,
        traceState: context.traceState,
      },
      side: "server",
      operation,
      startEpochMs: performance.timeOrigin + arrivalMs,
      durationMs: endMs - arrivalMs,
      outcome: outcomeOf(exchange.errorCode),
      provider: "octavo",
      server,
      request: { model: modelName, ...facts, ...(exchange.isStream ? { stream: true } : {}) },
      response: {
        model: modelName,
        httpStatus,
        requestId,
        ...(responseId === undefined ? {} : { id: responseId }),
        ...(reasons.length === 0 ? {} : { finishReasons: reasons }),
      },
      usage: requestUsage(finished),
      stream: undefined,
      serving: servingFacts(
        finished,
        { ...this.#options, ...model },
        { requestId: exchange.octavoId, computeMs },
      ),
      context: {
        ownerId,
        ...(tenant === undefined ? {} : { tenantId: tenant }),
        ...(feature === undefined ? {} : { feature }),
        ...(userId === undefined ? {} : { userId }),
        ...(Object.keys(attributes).length === 0 ? {} : { attributes }),
      },
      content: exchange.account.capturedContent,
    };
  }
}

/** What a refused request would have been: no engine request counted its tokens, and nothing of it was used. */
function refusedFacts({ finished, countedTokens }: RequestAccount): Readonly<Record<string, string>> {
  return finished.length > 0 || countedTokens === 0
    ? {}
    : { "octavo.refused.input_tokens": String(countedTokens) };
}

/** Spans carry codes only: messages may repeat what the client sent. */
function outcomeOf(code: ErrorCode | undefined): SpanOutcome {
  if (code === undefined) return { kind: "ok" };
  return { kind: code === "request_cancelled" ? "aborted" : "error", errorType: code, message: undefined };
}
