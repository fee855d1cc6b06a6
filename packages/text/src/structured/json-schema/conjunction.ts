import type { JsonValue } from "../grammar.js";
import { anyKind, kindsOf, type Located } from "./keywords.js";
import { restrictionOf } from "./restriction.js";

/**
 * The schemas of a value, all of which it must satisfy; `undefined` where no value can. Conjunctions instead of merged
 * schemas, so that a recursive schema gives finitely many of them.
 */
export type Conjunction = readonly Located[];

/** Resolves the keywords that combine schemas. */
export interface SchemaCombiner {
  conjunction(schemas: readonly (readonly [JsonValue, string])[], parent?: Located): Conjunction | undefined;
  flatten(conjunction: Conjunction): Conjunction | undefined;
  branches(conjunction: Conjunction): Conjunction[];
  not(schema: JsonValue): JsonValue;
}

const choices = ["anyOf", "oneOf"] as const;

export function hasChoice({ schema }: Located): boolean {
  return choices.some((keyword) => schema[keyword] !== undefined);
}

export function kindsIn(conjunction: Conjunction): number {
  return conjunction.reduce((bits, located) => bits & kindsOf(located), anyKind);
}

/** Kinds by `type` alone: a value whose kind no keyword mentions satisfies the schema. */
export function allKindsIn(conjunction: Conjunction): number {
  return kindsIn(
    conjunction.filter(({ schema }) => schema["type"] !== undefined || restrictionOf(schema) !== undefined),
  );
}

/** Whether members or items that a schema speaks of count as evaluated for `unevaluatedProperties` and its like in `holder`. */
export function isVisible(located: Located, holder: Located): boolean {
  if (located === holder) return true;
  return (
    restrictionOf(located.schema) === undefined &&
    (located.within ?? []).includes(holder.origin ?? holder.schema)
  );
}
