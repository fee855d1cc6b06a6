import { jsonText } from "../conventions/attribute-list.js";
import type { GapStatistics, LlmSpan } from "../span/llm-span.js";
import { wellFormed } from "../span/well-formed.js";

export type SpanCell = string | number | boolean | undefined;

export interface SpanColumn {
  readonly name: string;
  readonly type: "VARCHAR" | "DOUBLE" | "BOOLEAN";
  readonly of: (span: LlmSpan) => SpanCell;
}

const text = (name: string, of: (span: LlmSpan) => string | undefined): SpanColumn => ({
  name,
  type: "VARCHAR",
  of,
});
const number = (name: string, of: (span: LlmSpan) => number | undefined): SpanColumn => ({
  name,
  type: "DOUBLE",
  of,
});

/** A span as a row: what queries filter, group and measure by. Times in ms, `start_ms` since 1970. */
export const columns: readonly SpanColumn[] = [
  number("start_ms", (span) => span.startEpochMs),
  number("duration_ms", (span) => span.durationMs),
  text("trace_id", (span) => span.identity.traceId),
  text("span_id", (span) => span.identity.spanId),
  text("parent_span_id", (span) => span.identity.parentSpanId),
  text("side", (span) => span.side),
  text("operation", (span) => span.operation),
  text("outcome", (span) => span.outcome.kind),
  text("error_type", ({ outcome }) => ("errorType" in outcome ? outcome.errorType : undefined)),
  text("provider", (span) => span.provider),
  text("model", (span) => span.response.model ?? span.request.model),
  text("tenant", (span) => span.context.tenantId),
  text("owner", (span) => span.context.ownerId),
  text("feature", featureOf),
  text("user_id", (span) => span.context.userId),
  text("session_id", (span) => span.context.sessionId),
  text("response_id", (span) => span.response.id),
  text("request_id", (span) => span.response.requestId),
  text("engine_request_id", (span) => span.serving?.requestId),
  text("finish_reason", (span) => span.response.finishReasons?.[0]),
  text("replica", (span) => span.serving?.replicaId),
  number("http_status", (span) => span.response.httpStatus),
  { name: "streamed", type: "BOOLEAN", of: (span) => span.request.stream === true },
  number("input_tokens", (span) => span.usage.inputTokens),
  number("output_tokens", (span) => span.usage.outputTokens),
  number("cached_tokens", (span) => span.usage.cacheReadInputTokens),
  number("ttft_ms", (span) => span.serving?.timeToFirstTokenMs ?? span.stream?.timeToFirstTokenMs),
  number("queue_depth", (span) => span.serving?.queueDepth),
  number("queue_ms", (span) => span.serving?.queueMs),
  number("prefill_ms", (span) => span.serving?.prefillMs),
  number("decode_ms", (span) => span.serving?.decodeMs),
  number("kernel_ms", (span) => span.serving?.kernelMs),
  number("gap_mean_ms", (span) => gapsOf(span)?.meanMs),
  number("gap_p99_ms", (span) => gapsOf(span)?.p99Ms),
  number("gap_max_ms", (span) => gapsOf(span)?.maxMs),
  number("cache_hit_ratio", (span) => span.serving?.cacheHitRatio),
  number("batch_size", (span) => span.serving?.batchSize?.mean),
  number("prefill_in_batch", (span) => span.serving?.prefillTokensInBatch?.max),
  number("preemptions", (span) => span.serving?.preemptions),
  number("draft_tokens", (span) => span.serving?.draftTokens),
  number("accepted_draft_tokens", (span) => span.serving?.acceptedDraftTokens),
  text("first_token_cause", (span) => span.serving?.firstTokenCause),
  text("slowest_gap_cause", (span) => span.serving?.slowestGap?.cause),
  text("slowest_gap_culprit", (span) => span.serving?.slowestGap?.culprit),
  text("attributes", (span) => ownAttributes(span)),
];

/** On the client's side it is an attribute like any other. */
function featureOf({ context }: LlmSpan): string | undefined {
  const own = context.attributes?.["feature"];
  return context.feature ?? (typeof own === "string" ? own : undefined);
}

function gapsOf({ stream, serving }: LlmSpan): GapStatistics | undefined {
  const gaps = stream?.gaps ?? serving?.gaps;
  return gaps === undefined || gaps.count === 0 ? undefined : gaps;
}

/** What the caller said of the call that has no column, as JSON. */
function ownAttributes({ context, content, request }: LlmSpan): string | undefined {
  const { tags, metadata, promptTemplate, attributes } = context;
  const own = { ...attributes, tags, metadata, promptTemplate, content };
  const isEmpty = Object.values(own).every((value) => value === undefined);
  return isEmpty ? undefined : jsonText({ ...own, request });
}

/** A row as a line of JSON; cells that are not there are left out. */
export function rowLine(span: LlmSpan): string {
  const row: Record<string, SpanCell> = {};
  for (const { name, of } of columns) {
    const cell = of(span);
    if (cell !== undefined) row[name] = typeof cell === "string" ? wellFormed(cell) : cell;
  }
  return `${JSON.stringify(row)}\n`;
}
