import type { JsonObject } from "../grammar.js";

/**
 * What a schema made by negation asks for that no keyword says. Such schemas are conditions: the properties that they
 * name are not declared by them, and nothing counts as evaluated by them.
 */
interface Restriction {
  /** Bits of the kinds that are left. */
  readonly kinds: number;
  /** Strings other than these. */
  readonly strings?: readonly string[];
  /** Strings in which this is not found. */
  readonly pattern?: { readonly pattern: string; readonly path: string };
  /** Numbers that this does not divide. */
  readonly divisor?: { readonly value: number; readonly path: string };
}

const restrictions = new WeakMap<JsonObject, Restriction>();

/** A schema that stands for a restriction together with keywords. */
export function restricted(restriction: Restriction, keywords: JsonObject = {}): JsonObject {
  const schema = { ...keywords };
  restrictions.set(schema, restriction);
  return schema;
}

export function restrictionOf(schema: JsonObject): Restriction | undefined {
  return restrictions.get(schema);
}
