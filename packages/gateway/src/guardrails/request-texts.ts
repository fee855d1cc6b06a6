import type { JsonFields } from "@octavo/protocol";

/** A text of a request and who wrote it. */
export interface RequestText {
  readonly role: string;
  readonly text: string;
}

type Rewrite = (text: RequestText) => string;

/**
 * The fields of a request with every text that a model would read rewritten: messages of any role with their parts, tool
 * calls' arguments, prompts and inputs. Fields that do not change are the same objects, so an unchanged result is `===`.
 */
export function rewriteTexts(fields: JsonFields, rewrite: Rewrite): JsonFields {
  let changed: Record<string, unknown> | undefined;
  for (const [name, role] of textFields) {
    const value = fields[name];
    if (value === undefined) continue;
    const rewritten = rewriteValue(value, role, rewrite);
    if (rewritten !== value) (changed ??= { ...fields })[name] = rewritten;
  }
  return changed ?? fields;
}

/** Fields that hold text, and whose it is where they do not say. */
const textFields: readonly (readonly [string, string])[] = [
  ["messages", "user"],
  ["system", "system"],
  ["instructions", "system"],
  ["prompt", "user"],
  ["suffix", "user"],
  ["input", "user"],
  ["query", "user"],
  ["documents", "user"],
  ["text_1", "user"],
  ["text_2", "user"],
];

/** Parts of messages that hold more text, in any API's form. */
const nestedFields = [
  "content",
  "text",
  "input",
  "output",
  "arguments",
  "function",
  "custom",
  "tool_calls",
  "reasoning_content",
] as const;

/** Tools' arguments are nested no deeper in practice. */
const mostDepth = 32;

function rewriteValue(value: unknown, role: string, rewrite: Rewrite, depth = 0): unknown {
  if (typeof value === "string") return rewrite({ role, text: value });
  if (typeof value !== "object" || value === null || depth > mostDepth) return value;
  if (Array.isArray(value)) {
    let changed: unknown[] | undefined;
    for (const [index, item] of value.entries()) {
      const rewritten = rewriteValue(item, role, rewrite, depth + 1);
      if (rewritten !== item) (changed ??= [...(value as unknown[])])[index] = rewritten;
    }
    return changed ?? value;
  }
  const object = value as Record<string, unknown>;
  const own = typeof object.role === "string" ? object.role : role;
  let changed: Record<string, unknown> | undefined;
  for (const name of nestedFields) {
    const inner = object[name];
    if (inner === undefined) continue;
    const rewritten = rewriteValue(inner, own, rewrite, depth + 1);
    if (rewritten !== inner) (changed ??= { ...object })[name] = rewritten;
  }
  return changed ?? value;
}
