import type { JsonValue } from "../grammar.js";
import { allowedValues, canonical } from "./enumerated.js";
import { kinds, schemaMap } from "./keywords.js";
import { allKindsIn, type SchemaCombiner, type Conjunction, hasChoice, kindsIn } from "./conjunction.js";

/** Whether no value can satisfy both. Conservative: false means unknown. */
export function areDisjoint(first: Conjunction, second: Conjunction, compiler: SchemaCombiner): boolean {
  // A generated value has a kind that the keywords of its own schema imply; the other schema accepts any kind it does not restrict.
  const common = (kindsIn(first) & allKindsIn(second)) | (allKindsIn(first) & kindsIn(second));
  if (common === 0) return true;
  if (first.some(hasChoice) || second.some(hasChoice)) return false;
  const values = allowedValues(first);
  const others = allowedValues(second);
  if (values !== undefined && others !== undefined) return !overlap(values, others);
  if (common !== kinds.object) return false;
  const required = requiredIn(second);
  for (const name of requiredIn(first)) {
    if (!required.has(name)) continue;
    const [own, theirs] = [valuesOf(first, name, compiler), valuesOf(second, name, compiler)];
    if (own !== undefined && theirs !== undefined && !overlap(own, theirs)) return true;
  }
  return excludes(first, second) || excludes(second, first);
}

/** One needs a property that the other forbids. */
function excludes(first: Conjunction, second: Conjunction): boolean {
  return [...requiredIn(first)].some((name) =>
    second.some(
      (located) =>
        located.schema["additionalProperties"] === false &&
        located.schema["patternProperties"] === undefined &&
        !schemaMap(located, "properties").some(([property]) => property === name),
    ),
  );
}

function requiredIn(conjunction: Conjunction): Set<string> {
  return new Set(
    conjunction.flatMap(({ schema }) => {
      const { required } = schema;
      return Array.isArray(required)
        ? required.filter((name): name is string => typeof name === "string")
        : [];
    }),
  );
}

function valuesOf(
  conjunction: Conjunction,
  name: string,
  compiler: SchemaCombiner,
): readonly JsonValue[] | undefined {
  const schemas = conjunction.flatMap((located) =>
    schemaMap(located, "properties")
      .filter(([property]) => property === name)
      .map(([, schema, path]): [JsonValue, string] => [schema, path]),
  );
  const parts = compiler.conjunction(schemas);
  const flat = parts === undefined ? undefined : compiler.flatten(parts);
  return flat === undefined || flat.some(hasChoice) ? undefined : allowedValues(flat);
}

function overlap(first: readonly JsonValue[], second: readonly JsonValue[]): boolean {
  const known = new Set(first.map(canonical));
  return second.some((value) => known.has(canonical(value)));
}
