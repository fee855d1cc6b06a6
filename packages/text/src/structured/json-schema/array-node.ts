import type { JsonValue } from "../grammar.js";
import { choice, type Node, nothing, optional, repeat, sequence, text } from "../node.js";
import { type ArrayShape, containsCounts, countedItems } from "./array-contains.js";
import { type Conjunction, isVisible } from "./conjunction.js";
import { booleanKeyword, countKeyword, type Located, schemaList } from "./keywords.js";
import type { SchemaContext } from "./schema-context.js";
import { pathOf, schemaError } from "./schema-error.js";
import { uniqueArray } from "./unique-array.js";

const maxPrefix = 1024;

/** An array under all of the schemas. */
export function arrayNode(conjunction: Conjunction, compiler: SchemaContext): Node {
  let least = 0;
  let most = Infinity;
  let unique: Located | undefined;
  const shapes = [
    ...conjunction.map(itemSchemas),
    ...conjunction.flatMap((located) => unevaluated(located, conjunction)),
  ];
  for (const located of conjunction) {
    least = Math.max(least, countKeyword(located, "minItems") ?? 0);
    most = Math.min(most, countKeyword(located, "maxItems") ?? most);
    if (booleanKeyword(located, "uniqueItems") === true) unique = located;
  }
  const numPrefix = Math.max(0, ...shapes.map(({ prefix }) => prefix.length));
  const schemasAt = (index: number): Conjunction | undefined =>
    compiler.conjunction(
      shapes
        .map(({ prefix, rest }) => (index < prefix.length ? prefix[index] : rest))
        .filter((part) => part !== undefined),
    );
  if (schemasAt(numPrefix) === undefined) most = Math.min(most, numPrefix);
  for (let index = 0; index < numPrefix; index += 1)
    if (schemasAt(index) === undefined) most = Math.min(most, index);
  if (most < least) return nothing;
  const shape: ArrayShape = { least, most, numPrefix, schemasAt };
  const counts = containsCounts(conjunction);
  if (most === 0) return counts.some((count) => count.least > 0) ? nothing : text("[]");
  if (unique !== undefined && most > 1) {
    if (counts.length > 0)
      throw schemaError(pathOf(unique.path, "uniqueItems"), "is not supported beside contains");
    return uniqueArray(pathOf(unique.path, "uniqueItems"), shape, compiler);
  }
  return counts.length > 0 ? countedItems(counts, shape, compiler) : plainArray(shape, compiler);
}

function plainArray({ least, most, numPrefix, schemasAt }: ArrayShape, compiler: SchemaContext): Node {
  const { spaces } = compiler;
  const after = schemasAt(numPrefix);
  const close = text("]");
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
  readonly prefix: readonly (readonly [JsonValue, string] | undefined)[];
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

/** The schema that `unevaluatedItems` gives positions which no schema visible to it covers. */
function unevaluated(holder: Located, conjunction: Conjunction): ItemSchemas[] {
  const { schema, path } = holder;
  const rest = schema["unevaluatedItems"];
  if (rest === undefined || rest === true) return [];
  let numEvaluated = 0;
  for (const located of conjunction) {
    if (!isVisible(located, holder)) continue;
    if (located.schema["contains"] !== undefined)
      throw schemaError(pathOf(path, "unevaluatedItems"), "is not supported beside contains");
    const own = itemSchemas(located);
    const goesOn =
      own.rest !== undefined || (located !== holder && located.schema["unevaluatedItems"] !== undefined);
    numEvaluated = goesOn ? Infinity : Math.max(numEvaluated, own.prefix.length);
    if (goesOn) break;
  }
  if (numEvaluated === Infinity) return [];
  return [
    {
      prefix: Array.from({ length: numEvaluated }, () => undefined),
      rest: [rest, pathOf(path, "unevaluatedItems")],
    },
  ];
}
