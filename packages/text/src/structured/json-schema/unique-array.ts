import type { JsonValue } from "../grammar.js";
import { all, choice, type Node, nothing, optional, repeat, sequence, text } from "../node.js";
import type { ArrayShape } from "./array-contains.js";
import { type Conjunction, kindsIn } from "./conjunction.js";
import { allowedValues, canonical } from "./enumerated.js";
import { numberFormats } from "./formats.js";
import { valueNode } from "./json-text.js";
import { kinds, numberKeyword, stringKeyword } from "./keywords.js";
import type { SchemaContext } from "./schema-context.js";
import { schemaError } from "./schema-error.js";

/** Up to this many values there is a rule for each subset of unused ones. */
const maxSubsetValues = 10;
/** Beyond that, an array is intersected with one condition for each value, up to this many. */
const maxUniqueValues = 16;
/** Integers between bounds that are tried: with `multipleOf`, few of them may be left. */
const maxTriedIntegers = 4096;

/** An array without equal items. Its items must have few values: what a grammar has to remember is which of them were used. */
export function uniqueArray(path: string, shape: ArrayShape, compiler: SchemaContext): Node {
  const { least, numPrefix, schemasAt } = shape;
  const items = schemasAt(numPrefix);
  const values = items === undefined || numPrefix > 0 ? undefined : fewValues(items, compiler);
  if (values === undefined || values.length > maxUniqueValues)
    throw schemaError(
      path,
      `is supported for items with an enum of at most ${maxUniqueValues} values, booleans, null or as many integers between bounds; a grammar cannot remember items of more values`,
    );
  const most = Math.min(shape.most, values.length);
  if (most < least) return nothing;
  if (most === 0) return text("[]");
  const filled =
    values.length <= maxSubsetValues
      ? bySubsets(values, least, most, compiler)
      : byConditions(values, least, most, compiler);
  return least === 0 ? choice(text("[]"), filled) : filled;
}

/** The values that an item may have where they are few; undefined where they are not. */
function fewValues(items: Conjunction, compiler: SchemaContext): readonly JsonValue[] | undefined {
  const values: JsonValue[] = [];
  for (const branch of compiler.combinations.branches(items)) {
    const listed = allowedValues(branch) ?? impliedValues(branch);
    if (listed === undefined) return undefined;
    values.push(...listed);
  }
  return [...new Map(values.map((value) => [canonical(value), value])).values()];
}

/** Booleans, null, and integers between bounds. */
function impliedValues(branch: Conjunction): readonly JsonValue[] | undefined {
  const bits = kindsIn(branch);
  if ((bits & ~(kinds.boolean | kinds.null | kinds.integer)) !== 0) return undefined;
  const values: JsonValue[] = [];
  if (bits & kinds.boolean) values.push(true, false);
  if (bits & kinds.null) values.push(null);
  if (bits & kinds.integer) {
    const integers = boundedIntegers(branch);
    if (integers === undefined) return undefined;
    values.push(...integers);
  }
  if (values.length === 0) return [];
  return allowedValues([...branch, { schema: { enum: values }, path: branch[0]?.path ?? "#" }]);
}

/** The integers within the widest reading of a branch's bounds; undefined where they are too many to be tried one by one. */
function boundedIntegers(branch: Conjunction): readonly number[] | undefined {
  let least = -Infinity;
  let most = Infinity;
  for (const located of branch) {
    const { schema } = located;
    const bound = (keyword: string): number | undefined =>
      typeof schema[keyword] === "boolean" ? undefined : numberKeyword(located, keyword);
    const range = numberFormats.get(stringKeyword(located, "format") ?? "");
    for (const value of [bound("minimum"), bound("exclusiveMinimum"), range?.minimum])
      least = Math.max(least, value ?? least);
    for (const value of [bound("maximum"), bound("exclusiveMaximum"), range?.maximum])
      most = Math.min(most, value ?? most);
  }
  const [first, last] = [Math.ceil(least), Math.floor(most)];
  if (last < first) return [];
  if (!Number.isSafeInteger(first) || !Number.isSafeInteger(last) || last - first >= maxTriedIntegers)
    return undefined;
  return Array.from({ length: last - first + 1 }, (_, index) => first + index);
}

function bySubsets(values: readonly JsonValue[], least: number, most: number, compiler: SchemaContext): Node {
  const { spaces } = compiler;
  const key = `${compiler.prefix}unique:${least},${most},${values.map(canonical).join("|")}`;
  const left = (used: number, count: number): Node =>
    compiler.rules.rule(`${key}:${used},${count}`, "uniqueItems", () => {
      const options = values.flatMap((value, index) => {
        if (used & (1 << index) || count >= most) return [];
        const lead = count === 0 ? sequence() : sequence(text(","), spaces.afterComma);
        return [
          sequence(lead, valueNode(value, spaces, compiler.writing), left(used | (1 << index), count + 1)),
        ];
      });
      if (count >= least && count > 0) options.push(sequence(spaces.inside, text("]")));
      return choice(...options);
    });
  return sequence(text("["), spaces.inside, left(0, 0));
}

/** A list of the right length in which each value stands at most once. The intersection's states are made as they are reached. */
function byConditions(
  values: readonly JsonValue[],
  least: number,
  most: number,
  { spaces, writing, rules, prefix }: SchemaContext,
): Node {
  const key = `${prefix}unique list:${least},${most},${values.map(canonical).join("|")}`;
  return rules.rule(key, "uniqueItems", () => {
    const comma = sequence(text(","), spaces.afterComma);
    const array = (content: Node): Node =>
      sequence(text("["), spaces.inside, content, spaces.inside, text("]"));
    const nodes = values.map((value) => valueNode(value, spaces, writing));
    const any = choice(...nodes);
    const list = array(sequence(any, repeat(sequence(comma, any), Math.max(0, least - 1), most - 1)));
    const conditions = nodes.map((node) => {
      const other = choice(...nodes.filter((each) => each !== node));
      const others = repeat(sequence(comma, other), 0, Infinity);
      return array(
        choice(sequence(node, others), sequence(other, others, optional(sequence(comma, node, others)))),
      );
    });
    return all(list, ...conditions);
  });
}
