import type { IncomingHttpHeaders } from "node:http";
import { performance } from "node:perf_hooks";
import type { Engine, EngineObserver } from "@octavo/engine";
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
import type { RequestAccount } from "../metering/request-account.js";
import { operationsByRoute, RequestTrace } from "./request-trace.js";
import { requestUsage, servingFacts } from "./serving-facts.js";

export interface ServerTracingOptions {
  readonly sinks: readonly SpanSink[];
  readonly sampleRatio: number;
  readonly engine: Engine;
  readonly engineVersion: string;
  readonly quantization: string | undefined;
  readonly replicaId: string | undefined;
  readonly modelName: string;
  /** Of every span. */
  readonly attributes: Attributes;
  readonly server: ServerAddress | undefined;
}

/** What a span needs of the exchange it describes. */
export interface TracedExchange {
  readonly trace: RequestTrace | undefined;
  readonly account: Pick<RequestAccount, "tenant" | "feature" | "computeMs">;
  readonly handler: string;
  readonly requestId: string;
  /** The engine's evidence is found by it. */
  readonly octavoId: string;
  readonly arrivalMs: number;
  readonly errorCode: ErrorCode | undefined;
  readonly httpStatus: number;
  readonly isStream: boolean;
}

/** After a client left, how long its span waits for the engine to let its requests go. */
const abortGraceMs = 2000;

/** The reply to `traceparent`, of the level 2 draft of W3C Trace Context. */
export const traceResponseHeader = "traceresponse";

export function traceResponse(context: TraceContext): string {
  return formatTraceParent(context);
}

/** Makes one span of every request that runs the model. */
export class ServerTracing {
  readonly #options: ServerTracingOptions;
  readonly #byEngineId = new Map<string, RequestTrace>();
  /** Requests that are answered or given up, while the engine still works for them. */
  readonly #late = new Set<() => void>();

  constructor(options: ServerTracingOptions) {
    this.#options = options;
  }

  get observer(): EngineObserver {
    return {
      onFinished: (request) => this.#byEngineId.get(request.requestId)?.engineFinished(request),
      onSettled: (requestId) => this.#byEngineId.get(requestId)?.engineSettled(requestId),
    };
  }

  get counts(): readonly SinkCounts[] {
    return this.#options.sinks.map((sink) => sink.counts);
  }

  /** Undefined for a request whose trace is not sampled. Headers that carry no valid context begin a trace. */
  begin(headers: IncomingHttpHeaders): RequestTrace | undefined {
    const parent = parseTraceContext(headers.traceparent, headers.tracestate);
    const context = childContext(parent, this.#options.sampleRatio);
    if (!context.isSampled) return undefined;
    return new RequestTrace(context, parent?.spanId, this.#byEngineId);
  }

  /** Records the span of an exchange that is over, as soon as the engine is done with it. */
  finish(exchange: TracedExchange): void {
    const { trace } = exchange;
    const operation = operationsByRoute.get(exchange.handler);
    if (trace === undefined) return;
    if (operation === undefined) {
      trace.release();
      return;
    }
    const endMs = performance.now();
    if (!trace.isRunning) {
      this.#record(trace, operation, exchange, endMs);
      return;
    }
    const record = (): void => {
      clearTimeout(timer);
      this.#late.delete(record);
      this.#record(trace, operation, exchange, endMs);
    };
    const timer = setTimeout(record, abortGraceMs).unref();
    this.#late.add(record);
    trace.onEngineSettled = () => {
      if (!trace.isRunning && this.#late.has(record)) record();
    };
  }

  async close(deadlineMs: number): Promise<void> {
    for (const record of this.#late) record();
    await Promise.all(this.#options.sinks.map((sink) => sink.close(deadlineMs)));
  }

  #record(trace: RequestTrace, operation: LlmOperation, exchange: TracedExchange, endMs: number): void {
    trace.release();
    const span = this.#span(trace, operation, exchange, endMs);
    for (const sink of this.#options.sinks) sink.add(span);
  }

  #span(trace: RequestTrace, operation: LlmOperation, exchange: TracedExchange, endMs: number): LlmSpan {
    const { context, finished, request, responseId, userId } = trace;
    const { tenant, feature, computeMs } = exchange.account;
    const { modelName, server, attributes } = this.#options;
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
      request: { model: modelName, ...request, ...(exchange.isStream ? { stream: true } : {}) },
      response: {
        model: modelName,
        httpStatus,
        requestId,
        ...(responseId === undefined ? {} : { id: responseId }),
        ...(reasons.length === 0 ? {} : { finishReasons: reasons }),
      },
      usage: requestUsage(finished),
      stream: undefined,
      serving: servingFacts(finished, this.#options, { requestId: exchange.octavoId, computeMs }),
      context: {
        ...(tenant === undefined ? {} : { tenantId: tenant }),
        ...(feature === undefined ? {} : { feature }),
        ...(userId === undefined ? {} : { userId }),
        ...(Object.keys(attributes).length === 0 ? {} : { attributes }),
      },
      content: undefined,
    };
  }
}

/** Codes say what failed; messages may repeat what the client sent, and stay out of spans. */
function outcomeOf(code: ErrorCode | undefined): SpanOutcome {
  if (code === undefined) return { kind: "ok" };
  return { kind: code === "request_cancelled" ? "aborted" : "error", errorType: code, message: undefined };
}
