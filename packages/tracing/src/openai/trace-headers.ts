import { asObject } from "@octavo/protocol";
import { formatTraceParent, type TraceContext } from "../span/trace-context.js";

/**
 * Request headers with the context added, in whichever of the shapes that openai takes they came: an object, `Headers`,
 * pairs, or its own `{ values, nulls }`. A `traceparent` of the caller's own stays.
 */
export function withTraceHeaders(headers: unknown, context: TraceContext): unknown {
  const added: [string, string][] = [["traceparent", formatTraceParent(context)]];
  if (context.traceState !== undefined) added.push(["tracestate", context.traceState]);
  if (headers === undefined || headers === null) return Object.fromEntries(added);
  if (headers instanceof Headers) {
    const copy = new Headers(headers);
    if (!copy.has("traceparent")) for (const [name, value] of added) copy.set(name, value);
    return copy;
  }
  if (Array.isArray(headers)) {
    const names = headers.map((pair: unknown) => (Array.isArray(pair) ? String(pair[0]).toLowerCase() : ""));
    return names.includes("traceparent") ? headers : [...headers, ...added];
  }
  const fields = asObject(headers);
  if (fields === undefined) return headers;
  if (fields["values"] instanceof Headers) {
    if (!fields["values"].has("traceparent"))
      for (const [name, value] of added) fields["values"].set(name, value);
    return headers;
  }
  const isGiven = Object.keys(fields).some((name) => name.toLowerCase() === "traceparent");
  return isGiven ? headers : { ...fields, ...Object.fromEntries(added) };
}
