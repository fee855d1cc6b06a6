import type { JsonValue } from "../grammar.js";
import { choice, type Node, nothing, optional, repeat, sequence, text } from "../node.js";
import { allowedValues, canonical } from "./enumerated.js";
import { valueNode } from "./json-text.js";
import { booleanOf, countOf, type Located, schemaList } from "./keywords.js";
import type { Conjunction, SchemaCompiler } from "./schema-compiler.js";
import { pathOf, schemaError } from "./schema-error.js";

const maxPrefix = 1024;
/** Values that a list without repetitions may be drawn from: there is a rule for each set of those left. */
const maxUniqueValues = 10;

/** An array under all of the schemas. */
export function arrayNode(conjunction: Conjunction, compiler: SchemaCompiler): Node {
  const { spaces } = compiler;
  let least = 0;
  let most = Number.POSITIVE_INFINITY;
  let unique: Located | undefined;
  const shapes = conjunction.map(itemSchemas);
  for (const located of conjunction) {
    least = Math.max(least, countOf(located, "minItems") ?? 0);
    most = Math.min(most, countOf(located, "maxItems") ?? most);
    if (booleanOf(located, "uniqueItems") === true) unique = located;
  }
  const numPrefix = Math.max(0, ...shapes.map(({ prefix }) => prefix.length));
  const schemasAt = (index: number): Conjunction | undefined =>
    compiler.conjunction(
      shapes.map(({ prefix, rest }) => prefix[index] ?? rest).filter((part) => part !== undefined),
    );
  const after = schemasAt(numPrefix);
  if (after === undefined) most = Math.min(most, numPrefix);
  for (let index = 0; index < numPrefix; index += 1)
    if (schemasAt(index) === undefined) most = Math.min(most, index);
  if (most < least) return nothing;
  const close = text("]");
  if (most === 0) return text("[]");
  if (unique !== undefined && most > 1) return uniqueArray(unique, after, numPrefix, least, most, compiler);
  const comma = sequence(text(","), spaces.afterComma);
  const item = after === undefined ? nothing : compiler.value(after);
  // From the last place of the prefix backwards: what may follow it, and whether the array may end before it.
  let rest: Node = repeat(sequence(comma, item), Math.max(0, least - numPrefix), most - numPrefix);
  if (numPrefix === 0) {
    rest = sequence(item, repeat(sequence(comma, item), Math.max(0, least - 1), most - 1));
    const filled = sequence(text("["), spaces.inside, rest, spaces.inside, close);
    return least === 0 ? choice(text("[]"), filled) : filled;
  }
  if (most <= numPrefix) rest = sequence();
  for (let index = Math.min(numPrefix, most) - 1; index >= 0; index -= 1) {
    const place = sequence(index === 0 ? sequence() : comma, compiler.value(schemasAt(index)), rest);
    rest = index >= Math.max(least, 1) ? optional(place) : place;
  }
  const filled = sequence(text("["), spaces.inside, rest, spaces.inside, close);
  return least === 0 ? choice(text("[]"), filled) : filled;
}

interface ItemSchemas {
  readonly prefix: readonly (readonly [JsonValue, string])[];
  readonly rest: readonly [JsonValue, string] | undefined;
}

/** `prefixItems` and `items`, or drafts' `items` as a list and `additionalItems`. */
function itemSchemas(located: Located): ItemSchemas {
  const { schema, path } = located;
  const { items } = schema;
  const isTuple = Array.isArray(items);
  const prefix =
    isTuple && items.length === 0 ? [] : (schemaList(located, isTuple ? "items" : "prefixItems") ?? []);
  if (prefix.length > maxPrefix)
    throw schemaError(pathOf(path, isTuple ? "items" : "prefixItems"), `has more than ${maxPrefix} schemas`);
  const keyword = isTuple ? "additionalItems" : "items";
  const rest = schema[keyword];
  return {
    prefix,
    rest: rest === undefined || Array.isArray(rest) ? undefined : [rest, pathOf(path, keyword)],
  };
}

function uniqueArray(
  located: Located,
  items: Conjunction | undefined,
  numPrefix: number,
  least: number,
  most: number,
  compiler: SchemaCompiler,
): Node {
  const path = pathOf(located.path, "uniqueItems");
  const flat = items === undefined ? undefined : compiler.flatten(items);
  const values = flat === undefined ? undefined : allowedValues(flat);
  if (values === undefined || numPrefix > 0 || values.length > maxUniqueValues)
    throw schemaError(path, `is supported for items with an enum of at most ${maxUniqueValues} values`);
  const { spaces } = compiler;
  const key = `unique:${least},${most},${values.map(canonical).join("|")}`;
  const left = (used: number, count: number): Node =>
    compiler.rules.rule(`${key}:${used},${count}`, "uniqueItems", () => {
      const options = values.flatMap((value, index) => {
        if (used & (1 << index) || count >= most) return [];
        const lead = count === 0 ? sequence() : sequence(text(","), spaces.afterComma);
        return [sequence(lead, valueNode(value, spaces), left(used | (1 << index), count + 1))];
      });
      if (count >= least && count > 0) options.push(sequence(spaces.inside, text("]")));
      return choice(...options);
    });
  const filled = sequence(text("["), spaces.inside, left(0, 0));
  return least === 0 ? choice(text("[]"), filled) : filled;
}
