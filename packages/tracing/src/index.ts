export {
  usingAttributes,
  usingTraceParent,
  type CallScope,
  type UsingAttributes,
} from "./context/using-attributes.js";
export {
  conventionNames,
  conventions,
  renderAttributes,
  spanName,
  type Convention,
  type ConventionName,
} from "./conventions/convention.js";
export { requestFacts } from "./openai/request-facts.js";
export { captureContent, type CaptureBounds, type WireExchange } from "./openai/capture-content.js";
export type { CallKind } from "./openai/call-kind.js";
export { EvaluationExporter, type EvaluationExporterOptions } from "./evaluation/evaluation-exporter.js";
export type { EvaluationResult } from "./evaluation/evaluation-result.js";
export { childContext } from "./span/trace-context.js";
export { checkOtlpEndpoint } from "./export/otlp-address.js";
export { OtlpExporter, type OtlpExporterOptions } from "./export/otlp-exporter.js";
export { HttpPoster, type PostAnswer } from "./export/http-post.js";
export type { SinkCounts, SpanSink } from "./export/span-sink.js";
export { instrumentOpenAI, type OpenAIClass } from "./openai/instrument-openai.js";
export {
  OtlpMetricsExporter,
  type ExportCounts,
  type OtlpMetricsExporterOptions,
} from "./metrics/otlp-metrics-exporter.js";
export { ServerMetrics, type OutputTimes, type ServedCall } from "./metrics/server-metrics.js";
export { register, type ForeignSpanContext, type RegisterOptions } from "./register.js";
export type * from "./span/llm-span.js";
export { GapSketch } from "./span/gap-sketch.js";
export { formatTraceParent, parseTraceContext, type TraceContext } from "./span/trace-context.js";
export { Tracing, type OpenCall, type TracingOptions } from "./tracing.js";
