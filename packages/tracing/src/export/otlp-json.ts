import { type ConventionName, renderAttributes, spanName } from "../conventions/convention.js";
import type { Attributes, AttributeValue, LlmSpan } from "../span/llm-span.js";
import { wellFormed } from "../span/well-formed.js";

/** Span kinds and status codes of OTLP's `trace.proto`. */
const spanKinds = { server: 2, client: 3 } as const;
const statusError = 2;
const sampledFlag = 1;

/** One span in OTLP's JSON encoding (opentelemetry-proto: hexadecimal ids, 64-bit integers as text). */
export function otlpSpan(span: LlmSpan, conventions: readonly ConventionName[]): object {
  const { identity, outcome } = span;
  const failed = outcome.kind === "error" || outcome.kind === "aborted";
  return {
    traceId: identity.traceId,
    spanId: identity.spanId,
    ...(identity.parentSpanId === undefined ? {} : { parentSpanId: identity.parentSpanId }),
    ...(identity.traceState === undefined ? {} : { traceState: identity.traceState }),
    flags: sampledFlag,
    name: wellFormed(spanName(span)),
    kind: spanKinds[span.side],
    startTimeUnixNano: unixNano(span.startEpochMs),
    endTimeUnixNano: unixNano(span.startEpochMs + span.durationMs),
    attributes: otlpAttributes(renderAttributes(span, conventions)),
    status: failed
      ? {
          code: statusError,
          ...(outcome.message === undefined ? {} : { message: wellFormed(outcome.message) }),
        }
      : {},
  };
}

/** The body around spans that were encoded one by one. */
export function otlpTraceBody(spans: readonly string[], resource: Attributes): string {
  const head = JSON.stringify({ attributes: otlpAttributes(resource) });
  return `{"resourceSpans":[{"resource":${head},"scopeSpans":[{"scope":{"name":"octavo"},"spans":[${spans.join(",")}]}]}]}`;
}

export function otlpAttributes(attributes: Attributes): readonly object[] {
  return Object.entries(attributes).map(([key, value]) => ({
    key: wellFormed(key),
    value: otlpValue(value),
  }));
}

function otlpValue(value: AttributeValue): object {
  if (typeof value === "string") return { stringValue: wellFormed(value) };
  if (typeof value === "boolean") return { boolValue: value };
  if (typeof value === "number") {
    if (Number.isSafeInteger(value)) return { intValue: String(value) };
    // JSON has no names for these; OTLP's mapping of doubles takes them as text
    return { doubleValue: Number.isFinite(value) ? value : String(value) };
  }
  return { arrayValue: { values: value.map((item) => otlpValue(item)) } };
}

/** Microseconds are what a double holds of the present. */
export function unixNano(epochMs: number): string {
  return `${Math.round(epochMs * 1000)}000`;
}
