import { nodeMatcher } from "../automaton/node-matcher.js";
import type { JsonValue } from "../grammar.js";
import { all, choice, type Node, not, nothing, repeat, sequence, text } from "../node.js";
import { anyOf } from "../text-choice.js";
import { type Conjunction, isVisible, kindsIn } from "./conjunction.js";
import { allowedValues } from "./enumerated.js";
import { countKeyword, kinds, type Located, schemaMap } from "./keywords.js";
import { restrictionOf } from "./restriction.js";
import type { SchemaContext } from "./schema-context.js";
import { pathOf, schemaError } from "./schema-error.js";
import { patternNode, stringContent } from "./string-node.js";

const maxProperties = 1024;
/** Patterns of `patternProperties` on one object: each subset of them needs a kind of member of its own. */
const maxPatterns = 3;

interface Property {
  readonly name: string;
  readonly value: Node;
  readonly isRequired: boolean;
}

/** Members beyond the declared ones: what their keys and values may be. */
interface OtherMembers {
  readonly key: Node;
  readonly value: Node;
}

/** An object under all of the schemas, its properties in the order in which they are declared. */
export function objectNode(conjunction: Conjunction, compiler: SchemaContext): Node {
  const own = conjunction.filter(({ schema }) => restrictionOf(schema) === undefined);
  const namesIn = (part: Conjunction): Set<string> =>
    new Set(part.flatMap((located) => schemaMap(located, "properties").map(([name]) => name)));
  const required = new Map<string, Located>();
  for (const located of conjunction) for (const name of requiredNames(located)) required.set(name, located);
  // A property with the schema `false` is not a declaration.
  const isDeclared =
    own.some((located) => schemaMap(located, "properties").some(([, schema]) => schema !== false)) ||
    conjunction.some(({ schema }) => schema["unevaluatedProperties"] === false);
  const isClosed =
    isDeclared &&
    conjunction.every(
      ({ schema }) =>
        schema["additionalProperties"] === undefined && (schema["unevaluatedProperties"] ?? false) === false,
    );
  const patterns = patternsOf(conjunction, compiler);
  // A property named only by a condition is a member of a closed object only if another schema allows it.
  const declared = [...namesIn(own)];
  for (const name of namesIn(conjunction)) {
    if (declared.includes(name)) continue;
    if (!isClosed || patterns.some(({ matches }) => matches(name))) declared.push(name);
  }
  const names = [...declared, ...[...required.keys()].filter((name) => !declared.includes(name))];
  if (names.length > maxProperties) {
    const where = conjunction.find(({ schema }) => schema["properties"] !== undefined) ?? conjunction[0]!;
    throw schemaError(pathOf(where.path, "properties"), `has more than ${maxProperties} properties`);
  }
  const keyConditions = conjunction.flatMap((located) => namesCondition(located, compiler));
  const isName = keyConditions.length === 0 ? undefined : nodeMatcher(all(...keyConditions));
  const properties: Property[] = [];
  for (const name of names) {
    const schemas = schemasOf(conjunction, (located) => schemasOfMember(located, name, patterns));
    const isAllowed = isName === undefined || isName(compiler.writing.write(name));
    const good = isAllowed ? compiler.conjunction(schemas) : undefined;
    const origin = required.get(name);
    if (good === undefined) {
      if (origin === undefined) continue;
      // One of several branches that cannot be satisfied, or a schema that contradicts itself.
      if (conjunction.length > 1) return nothing;
      throw schemaError(
        pathOf(origin.path, "required"),
        `asks for ${JSON.stringify(name.slice(0, 60))}, which the schema does not allow`,
      );
    }
    properties.push({ name, value: compiler.value(good), isRequired: origin !== undefined });
  }
  const others =
    isClosed && patterns.length === 0
      ? []
      : otherMembers(conjunction, names, patterns, isClosed, keyConditions, compiler);
  return members(properties, others, countBounds(conjunction, properties, others), compiler);
}

/**
 * What all schemas say of a member. `say` tells what one says of it, undefined for nothing: `unevaluatedProperties` applies
 * to members that no schema visible to it mentions.
 */
function schemasOf(
  conjunction: Conjunction,
  say: (located: Located) => [JsonValue, string][] | undefined,
): [JsonValue, string][] {
  const said = conjunction.map((located) => [located, say(located)] as const);
  return said.flatMap(([holder, own]) => {
    const rest = holder.schema["unevaluatedProperties"];
    if (rest === undefined || rest === true) return own ?? [];
    const isEvaluated = said.some(
      ([located, schemas]) =>
        isVisible(located, holder) &&
        (schemas !== undefined ||
          (located !== holder && located.schema["unevaluatedProperties"] !== undefined)),
    );
    return isEvaluated ? (own ?? []) : [[rest, pathOf(holder.path, "unevaluatedProperties")]];
  });
}

function requiredNames({ schema, path }: Located): readonly string[] {
  const { required } = schema;
  // Draft 3 and some generators put a flag on the property itself; it says nothing about this object.
  if (required === undefined || typeof required === "boolean") return [];
  if (!Array.isArray(required) || !required.every((name) => typeof name === "string"))
    throw schemaError(pathOf(path, "required"), "must be a list of property names");
  return required;
}

/** The schemas that one schema gives a member: from `properties`, `patternProperties` or `additionalProperties`. */
function schemasOfMember(
  located: Located,
  name: string,
  patterns: readonly KeyPattern[],
): [JsonValue, string][] | undefined {
  const own = schemaMap(located, "properties").filter(([property]) => property === name);
  const matching = schemaMap(located, "patternProperties").filter(
    ([pattern]) => patterns.find((known) => known.pattern === pattern)?.matches(name) === true,
  );
  const found = [...own, ...matching].map(([, value, at]): [JsonValue, string] => [value, at]);
  return found.length > 0 ? found : additional(located);
}

function additional({ schema, path }: Located): [JsonValue, string][] | undefined {
  const value = schema["additionalProperties"];
  return value === undefined ? undefined : [[value, pathOf(path, "additionalProperties")]];
}

interface KeyPattern {
  readonly pattern: string;
  readonly node: Node;
  readonly matches: (name: string) => boolean;
}

function patternsOf(conjunction: Conjunction, { writing }: SchemaContext): readonly KeyPattern[] {
  const found = new Map<string, KeyPattern>();
  for (const located of conjunction) {
    for (const [pattern, , path] of schemaMap(located, "patternProperties")) {
      if (found.has(pattern)) continue;
      const node = patternNode(pattern, path, true, writing);
      const isMatch = nodeMatcher(node);
      found.set(pattern, { pattern, node, matches: (name) => isMatch(writing.write(name)) });
    }
    if (found.size > maxPatterns)
      throw schemaError(pathOf(located.path, "patternProperties"), `has more than ${maxPatterns} patterns`);
  }
  return [...found.values()];
}

/** The condition of `propertyNames` on every key. */
function namesCondition({ schema, path: at }: Located, compiler: SchemaContext): Node[] {
  const { propertyNames } = schema;
  if (propertyNames === undefined || propertyNames === true) return [];
  const path = pathOf(at, "propertyNames");
  const names = compiler.conjunction([[propertyNames, path]]);
  const branches = names === undefined ? [] : compiler.combinations.branches(names);
  const options = branches.flatMap((branch): Node[] => {
    const values = allowedValues(branch);
    if (values === undefined)
      return kindsIn(branch) & kinds.string ? [stringContent(branch, compiler.writing)] : [];
    const strings = values.filter((value) => typeof value === "string");
    return strings.map((value) => text(compiler.writing.write(value)));
  });
  return [all(compiler.writing.anything, choice(...options))];
}

/** One kind of additional member for each subset of the patterns that a key may match. */
function otherMembers(
  conjunction: Conjunction,
  names: readonly string[],
  patterns: readonly KeyPattern[],
  isClosed: boolean,
  keyConditions: readonly Node[],
  compiler: SchemaContext,
): OtherMembers[] {
  const taken = anyOf(names.map((name) => text(compiler.writing.write(name))));
  const result: OtherMembers[] = [];
  for (let set = 0; set < 1 << patterns.length; set += 1) {
    if (set === 0 && isClosed) continue;
    const inSet = (index: number): boolean => (set & (1 << index)) !== 0;
    const schemas = schemasOf(conjunction, (located) => {
      const matching = schemaMap(located, "patternProperties").filter(([pattern]) =>
        inSet(patterns.findIndex((known) => known.pattern === pattern)),
      );
      const found = matching.map(([, value, path]): [JsonValue, string] => [value, path]);
      return found.length > 0 ? found : additional(located);
    });
    const good = compiler.conjunction(schemas);
    if (good === undefined) continue;
    const conditions = patterns.map(({ node }, index) => (inSet(index) ? node : not(node)));
    const excluded = names.length === 0 ? [] : [not(taken)];
    result.push({
      key: all(compiler.writing.anything, ...conditions, ...excluded, ...keyConditions),
      value: compiler.value(good),
    });
  }
  return result;
}

interface CountBounds {
  readonly least: number;
  readonly most: number;
}

function countBounds(
  conjunction: Conjunction,
  properties: readonly Property[],
  others: readonly OtherMembers[],
): CountBounds {
  let least = 0;
  let most = Infinity;
  for (const located of conjunction) {
    const atLeast = countKeyword(located, "minProperties") ?? 0;
    // Other members may repeat a key, which a parser counts once, so at most one of them counts here.
    if (others.length > 0 && atLeast > properties.filter(({ isRequired }) => isRequired).length + 1)
      throw schemaError(
        pathOf(located.path, "minProperties"),
        "above 1 is supported for declared properties alone, not for additional ones",
      );
    least = Math.max(least, atLeast);
    most = Math.min(most, countKeyword(located, "maxProperties") ?? most);
  }
  return { least, most };
}

function members(
  properties: readonly Property[],
  others: readonly OtherMembers[],
  { least, most }: CountBounds,
  compiler: SchemaContext,
): Node {
  const { spaces, rules } = compiler;
  const hasBounds = least > 0 || most !== Infinity;
  const close = sequence(spaces.inside, text("}"));
  const comma = sequence(text(","), spaces.afterComma);
  const other = choice(
    ...others.map(({ key, value }) => sequence(text('"'), key, text('":'), spaces.afterColon, value)),
  );
  const counted = (count: number): number => (hasBounds ? count : Math.min(count, 1));
  /** What may follow once the properties before `index` are decided; `count` members are written (0, or counted if bounded). */
  const from = rules.family("object", (index: number, count: number): Node => {
    const lead = count === 0 ? sequence() : comma;
    const property = properties[index];
    if (property === undefined) return end(count, lead);
    const { name, value, isRequired } = property;
    const options: Node[] = [];
    if (count < most) {
      const label = text(`"${compiler.writing.write(name)}":`);
      options.push(sequence(lead, label, spaces.afterColon, value, from(index + 1, counted(count + 1))));
    }
    if (!isRequired) options.push(from(index + 1, count));
    return choice(...options);
  });
  const end = (count: number, lead: Node): Node => {
    const options: Node[] = [];
    if (count >= least) options.push(count === 0 ? text("}") : close);
    const room = most - count;
    if (others.length > 0 && room > 0) {
      const more = repeat(sequence(comma, other), 0, hasBounds ? room - 1 : Infinity);
      if (count + 1 >= least) options.push(sequence(lead, other, more, close));
    }
    return choice(...options);
  };
  if (properties.length === 0 && others.length === 0) return least === 0 ? text("{}") : nothing;
  const opened = from(0, 0);
  const empty = properties.every(({ isRequired }) => !isRequired) && least === 0 ? text("{}") : nothing;
  return choice(empty, sequence(text("{"), spaces.inside, opened));
}
