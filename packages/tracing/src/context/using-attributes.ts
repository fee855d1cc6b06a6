import { AsyncLocalStorage } from "node:async_hooks";
import { OctavoError } from "@octavo/protocol";
import type { AttributeValue, PromptTemplate, SpanContextAttributes } from "../span/llm-span.js";
import { parseTraceContext, type TraceContext } from "../span/trace-context.js";

/** What `usingAttributes` takes: named facts, and attributes under any other name, such as `llm.system`. */
export interface UsingAttributes {
  readonly sessionId?: string;
  readonly userId?: string;
  readonly tenantId?: string;
  readonly tags?: readonly string[];
  readonly metadata?: Readonly<Record<string, unknown>>;
  readonly promptTemplate?: PromptTemplate;
  readonly [name: string]:
    | AttributeValue
    | Readonly<Record<string, unknown>>
    | PromptTemplate
    | null
    | undefined;
}

/** What holds for the calls made in a scope. */
export interface CallScope {
  readonly attributes: SpanContextAttributes;
  /** The span that calls are children of. */
  readonly parent: TraceContext | undefined;
}

const storage = new AsyncLocalStorage<CallScope>();
const noScope: CallScope = { attributes: {}, parent: undefined };

/** Other spellings of the named facts: traceAI's and OpenInference's. */
const aliases: ReadonlyMap<string, keyof SpanContextAttributes> = new Map([
  ["session.id", "sessionId"],
  ["session_id", "sessionId"],
  ["user.id", "userId"],
  ["user_id", "userId"],
  ["tenant_id", "tenantId"],
  ["tag.tags", "tags"],
]);

/**
 * Runs `fn` so that the spans of every call made in it, also later in callbacks and after awaits, carry the attributes.
 * Calls nest: inner attributes are added to outer ones and win over those of the same name.
 * Throws `invalid_option` for a value that no attribute can hold.
 */
export function usingAttributes<Result>(attributes: UsingAttributes, fn: () => Result): Result {
  const scope = currentScope();
  return storage.run({ ...scope, attributes: mergeContext(scope.attributes, attributes) }, fn);
}

/**
 * Runs `fn` so that calls made in it continue the trace of a request that came in with W3C's headers. Headers that carry
 * no valid context change nothing.
 */
export function usingTraceParent<Result>(
  headers: { readonly traceparent?: unknown; readonly tracestate?: unknown },
  fn: () => Result,
): Result {
  const parent = parseTraceContext(headers.traceparent, headers.tracestate);
  return parent === undefined ? fn() : storage.run({ ...currentScope(), parent }, fn);
}

export function currentScope(): CallScope {
  return storage.getStore() ?? noScope;
}

export function mergeContext(outer: SpanContextAttributes, given: UsingAttributes): SpanContextAttributes {
  const named: Record<string, unknown> = {};
  const attributes: Record<string, AttributeValue> = { ...outer.attributes };
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined || value === null) continue;
    const fact = aliases.get(name) ?? name;
    const check = factChecks.get(fact);
    if (check !== undefined) {
      if (!check(value)) refuse(name, value);
      named[fact] = value;
    } else if (isAttributeValue(value)) attributes[name] = value;
    else refuse(name, value);
  }
  return { ...outer, ...named, ...(Object.keys(attributes).length === 0 ? {} : { attributes }) };
}

const isText = (value: unknown): boolean => typeof value === "string";
const isObject = (value: unknown): boolean =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const factChecks: ReadonlyMap<string, (value: unknown) => boolean> = new Map([
  ["sessionId", isText],
  ["userId", isText],
  ["tenantId", isText],
  ["tags", (value: unknown) => Array.isArray(value) && value.every(isText)],
  ["metadata", isObject],
  ["promptTemplate", isObject],
]);

function isAttributeValue(value: unknown): value is AttributeValue {
  if (!Array.isArray(value)) return ["string", "number", "boolean"].includes(typeof value);
  const type = typeof value[0];
  return value.every((item) => isAttributeValue(item) && !Array.isArray(item) && typeof item === type);
}

function refuse(name: string, value: unknown): never {
  const got = Array.isArray(value) ? "a mixed or nested list" : `a value of type ${typeof value}`;
  throw new OctavoError(
    "invalid_option",
    `usingAttributes: ${JSON.stringify(name.slice(0, 100))} must be a string, a number, a boolean or a list of one of them, got ${got}`,
    { param: name.slice(0, 100) },
  );
}
