import { type LlmSpan, OtlpExporter, type TraceContext } from "@octavo/tracing";
import type { GatewayConfig } from "../config/schema.js";
import type { LiveExchange } from "../exchange/live-exchange.js";

/** Sends a span of every sampled call to a collector. */
export class GatewaySpans {
  readonly #exporter: OtlpExporter | undefined;
  readonly sampleRatio: number;

  constructor(tracing: GatewayConfig["tracing"]) {
    this.sampleRatio = tracing?.sample_ratio ?? 0;
    this.#exporter =
      tracing === undefined
        ? undefined
        : new OtlpExporter({
            endpoint: tracing.otlp_endpoint,
            headers: tracing.headers,
            resource: { "service.name": "octavo-gateway" },
            conventions: ["opentelemetry"],
          });
  }

  record({ ledger, trace, operation }: LiveExchange, parentSpanId: string | undefined): void {
    if (this.#exporter === undefined || !trace.isSampled) return;
    const { usage, winner } = ledger;
    const failed = ledger.attempts.find(({ outcome }) => !["ok", "cancelled", "pending"].includes(outcome));
    const span: LlmSpan = {
      identity: identityOf(trace, parentSpanId),
      side: "server",
      operation:
        operation === "embeddings" ? "embeddings" : operation === "completions" ? "text_completion" : "chat",
      startEpochMs: ledger.arrivedEpochMs,
      durationMs: ledger.durationMs ?? 0,
      outcome:
        ledger.errorCode === undefined
          ? { kind: "ok" }
          : {
              kind: ledger.errorCode === "request_cancelled" ? "aborted" : "error",
              errorType: ledger.errorCode,
              message: undefined,
            },
      provider: "octavo-gateway",
      server: undefined,
      request: { model: ledger.requestedModel, stream: ledger.isStream },
      response: {
        ...(winner !== undefined && { model: winner.model }),
        httpStatus: ledger.status,
        requestId: ledger.requestId,
      },
      usage: {
        ...(usage !== undefined && {
          inputTokens: usage.promptTokens,
          outputTokens: usage.completionTokens,
          cacheReadInputTokens: usage.cachedTokens,
        }),
      },
      stream: undefined,
      serving: undefined,
      context: {
        ...(ledger.tenant !== undefined && { tenantId: ledger.tenant }),
        attributes: {
          "octavo.gateway.route": ledger.route ?? "none",
          "octavo.gateway.strategy": ledger.strategy ?? "none",
          "octavo.gateway.target": winner?.target ?? "none",
          "octavo.gateway.attempts": ledger.attempts.length,
          ...(failed !== undefined && {
            "octavo.gateway.failed_target": failed.target,
            "octavo.gateway.failed_outcome": failed.outcome,
          }),
          "octavo.gateway.cost_usd": ledger.costUsd,
          "octavo.gateway.cache": ledger.cache,
        },
      },
      content: undefined,
    };
    this.#exporter.add(span);
  }

  async close(): Promise<void> {
    await this.#exporter?.close(5000);
  }
}

function identityOf(trace: TraceContext, parentSpanId: string | undefined): LlmSpan["identity"] {
  return { traceId: trace.traceId, spanId: trace.spanId, parentSpanId, traceState: trace.traceState };
}
