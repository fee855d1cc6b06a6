import { otlpAttributes, unixNano } from "../export/otlp-json.js";
import type { Attributes, SpanIdentity } from "../span/llm-span.js";
import { wellFormed } from "../span/well-formed.js";

/** What an evaluator said of one answer. */
export interface EvaluationResult {
  /** The evaluator's. */
  readonly name: string;
  /** Milliseconds since 1970. */
  readonly epochMs: number;
  readonly scoreValue?: number | undefined;
  /** Low cardinality, such as `pass`. */
  readonly scoreLabel?: string | undefined;
  readonly explanation?: string | undefined;
  /** Where the evaluator could not tell: why, in low cardinality. */
  readonly errorType?: string | undefined;
  /** The `id` of the answer. */
  readonly responseId?: string | undefined;
  /** The span of the call that gave it. */
  readonly span?: Pick<SpanIdentity, "traceId" | "spanId"> | undefined;
  /** Under names of the caller's own. */
  readonly attributes?: Attributes | undefined;
}

const eventName = "gen_ai.evaluation.result";
/** `SEVERITY_NUMBER_INFO` of OTLP's `logs.proto`. */
const severityInfo = 9;
const longestExplanation = 4096;

/**
 * One log record in OTLP's JSON encoding: the event `gen_ai.evaluation.result` of OpenTelemetry's conventions for generative AI
 * (`semantic-conventions-genai`, gen-ai-events, in development).
 */
export function otlpEvaluation(result: EvaluationResult): object {
  const { name, epochMs, scoreValue, scoreLabel, explanation, errorType, responseId, span } = result;
  const attributes: Attributes = {
    ...result.attributes,
    "gen_ai.evaluation.name": name,
    ...(scoreLabel === undefined ? {} : { "gen_ai.evaluation.score.label": scoreLabel }),
    ...(explanation === undefined
      ? {}
      : { "gen_ai.evaluation.explanation": explanation.slice(0, longestExplanation) }),
    ...(responseId === undefined ? {} : { "gen_ai.response.id": responseId }),
    ...(errorType === undefined ? {} : { "error.type": errorType }),
  };
  const score =
    scoreValue === undefined
      ? []
      : // a score of 1 is a double as well
        [{ key: "gen_ai.evaluation.score.value", value: { doubleValue: scoreValue } }];
  return {
    timeUnixNano: unixNano(epochMs),
    observedTimeUnixNano: unixNano(epochMs),
    severityNumber: severityInfo,
    eventName,
    ...(span === undefined
      ? {}
      : { traceId: wellFormed(span.traceId), spanId: wellFormed(span.spanId), flags: 1 }),
    attributes: [...otlpAttributes(attributes), ...score],
  };
}

/** The body around records that were encoded one by one. */
export function otlpLogsBody(records: readonly string[], resource: Attributes): string {
  const head = JSON.stringify({ attributes: otlpAttributes(resource) });
  return `{"resourceLogs":[{"resource":${head},"scopeLogs":[{"scope":{"name":"octavo"},"logRecords":[${records.join(",")}]}]}]}`;
}
