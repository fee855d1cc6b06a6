import type { Attributes, AttributeValue, LlmSpan } from "../span/llm-span.js";
import { openInferenceAttributes } from "./openinference.js";
import { openTelemetryAttributes } from "./opentelemetry.js";
import { traceAiAttributes } from "./traceai.js";

/** A vocabulary for spans. A span may be rendered in several at once: their names do not collide. */
export type ConventionName = "opentelemetry" | "openinference" | "traceai";

/** The attributes of a span by the names of one convention. */
export type Convention = (span: LlmSpan) => Attributes;

/** How each convention names what a span knows. */
export const conventions: Readonly<Record<ConventionName, Convention>> = {
  opentelemetry: openTelemetryAttributes,
  openinference: openInferenceAttributes,
  traceai: traceAiAttributes,
};

/** Vocabularies that spans can be written in. */
export const conventionNames = Object.keys(conventions) as readonly ConventionName[];

/** The span in each of the conventions, the caller's own attributes last. */
export function renderAttributes(span: LlmSpan, names: readonly ConventionName[]): Attributes {
  const rendered: Record<string, AttributeValue> = {};
  for (const name of names) Object.assign(rendered, conventions[name](span));
  return Object.assign(rendered, span.context.attributes);
}

/** `chat gpt-4o`, as OpenTelemetry names spans. */
export function spanName(span: LlmSpan): string {
  const model = span.request.model ?? span.response.model;
  return model === undefined ? span.operation : `${span.operation} ${model}`;
}
