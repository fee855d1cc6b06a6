import type { JsonLayout, JsonObject, JsonValue } from "../grammar.js";
import { choice, type Node, nothing, text } from "../node.js";
import type { RuleBuilder } from "../rule-builder.js";
import { arrayNode } from "./array-node.js";
import { areDisjoint } from "./disjoint.js";
import { allowedValues } from "./enumerated.js";
import { type JsonSpaces, jsonSpaces, valueNode } from "./json-text.js";
import { anyKind, checkKeywords, isObject, kinds, kindsOf, type Located, schemaList } from "./keywords.js";
import { numberNode } from "./numeric.js";
import { objectNode } from "./object-node.js";
import { References } from "./references.js";
import { pathOf, schemaError } from "./schema-error.js";
import { stringNode } from "./string-node.js";

const maxNesting = 256;
/** Combinations of `anyOf`, `oneOf` branches that one value may have. */
const maxBranches = 1024;
const maxConjuncts = 256;

/**
 * A value's schemas: it has to be good under each of them. `undefined` where nothing is good. Conjunctions rather than
 * merged schemas, so that a schema that refers to itself gives finitely many of them.
 */
export type Conjunction = readonly Located[];

/**
 * JSON schema (2020-12, and what drafts 4 to 7 spell differently) as rules. Objects whose `additionalProperties` is not
 * given have no others than those declared, and properties come in the order in which they are declared: fewer texts
 * than the schema allows, but each of them valid. Throws `invalid_request` naming the keyword at fault.
 */
export class SchemaCompiler {
  readonly rules: RuleBuilder;
  readonly spaces: JsonSpaces;
  readonly #prefix: string;
  readonly #references: References;
  readonly #root: JsonValue;
  readonly #ids = new Map<JsonObject, number>();
  readonly #without = new Map<string, Map<JsonObject, JsonObject>>();
  #nesting = 0;

  constructor(root: JsonValue, layout: JsonLayout, rules: RuleBuilder, prefix: string) {
    this.#root = root;
    this.rules = rules;
    this.spaces = jsonSpaces(layout);
    this.#references = new References(root);
    this.#prefix = prefix;
  }

  compile(): Node {
    return this.value(this.conjunction([[this.#root, "#"]]));
  }

  /** Schemas as given, `true` left out; undefined when one is `false`. */
  conjunction(schemas: readonly (readonly [JsonValue, string])[]): Conjunction | undefined {
    const result: Located[] = [];
    for (const [schema, path] of schemas) {
      if (schema === false) return undefined;
      if (schema === true) continue;
      if (!isObject(schema)) throw schemaError(path, "must be an object, true or false");
      result.push({ schema, path });
    }
    return result;
  }

  /** The rule for a value under all of these schemas. */
  value(conjunction: Conjunction | undefined): Node {
    if (conjunction === undefined) return nothing;
    const distinct = [
      ...new Map(conjunction.map((located) => [this.#id(located.schema), located])).entries(),
    ];
    const key = distinct
      .map(([id]) => id)
      .toSorted((a, b) => a - b)
      .join("&");
    const name = conjunction[0]?.path ?? "any";
    return this.rules.rule(`${this.#prefix}value:${key}`, name, () => {
      if (++this.#nesting > maxNesting)
        throw schemaError(name, `is nested more than ${maxNesting} schemas deep`);
      const node = this.#alternatives(distinct.map(([, located]) => located));
      this.#nesting -= 1;
      return node;
    });
  }

  #id(schema: JsonObject): number {
    let id = this.#ids.get(schema);
    if (id === undefined) {
      id = this.#ids.size;
      this.#ids.set(schema, id);
    }
    return id;
  }

  #alternatives(conjunction: Conjunction): Node {
    const branches = this.#branches(conjunction);
    return choice(...branches.map((branch) => this.#plainValue(branch)));
  }

  /** Resolves `$ref`, `allOf`, `anyOf` and `oneOf`: each result is a conjunction without any of them. */
  #branches(conjunction: Conjunction): Conjunction[] {
    const done: Conjunction[] = [];
    const pending: Conjunction[] = [conjunction];
    for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
      const flat = this.flatten(next);
      if (flat === undefined) continue;
      const open = flat.find(({ schema }) => schema["anyOf"] !== undefined || schema["oneOf"] !== undefined);
      if (open === undefined) {
        done.push(flat);
        continue;
      }
      const keyword = open.schema["anyOf"] === undefined ? "oneOf" : "anyOf";
      const options = schemaList(open, keyword)!;
      const others = flat.map((located) =>
        located === open ? { ...open, schema: this.#stripped(open.schema, keyword) } : located,
      );
      const branches = options
        .map((option) => this.conjunction([option]))
        .filter((option) => option !== undefined)
        .map((option) => [...others, ...option]);
      if (keyword === "oneOf") this.#checkExclusive(open, branches);
      if (done.length + pending.length + branches.length > maxBranches)
        throw schemaError(pathOf(open.path, keyword), `makes more than ${maxBranches} combinations`);
      // Taken from the end: the first option is to be looked at first.
      pending.push(...branches.toReversed());
    }
    return done;
  }

  #checkExclusive(open: Located, branches: readonly Conjunction[]): void {
    const flat = branches.map((branch) => this.flatten(branch));
    for (const [index, first] of flat.entries()) {
      for (let other = 0; other < index; other += 1) {
        const second = flat[other];
        if (first === undefined || second === undefined || areDisjoint(first, second, this)) continue;
        throw schemaError(
          pathOf(open.path, "oneOf"),
          `has branches ${other} and ${index}, which a value might match both; use anyOf, or give them different types or a ` +
            "required property with different const values",
        );
      }
    }
  }

  /** The conjunction with `$ref` and `allOf` resolved; undefined when nothing is good. */
  flatten(conjunction: Conjunction): Conjunction | undefined {
    const result = new Map<JsonObject, Located>();
    const pending = [...conjunction].toReversed();
    const seen = new Set<JsonObject>();
    for (let located = pending.pop(); located !== undefined; located = pending.pop()) {
      if (seen.has(located.schema)) continue;
      seen.add(located.schema);
      if (seen.size > maxConjuncts)
        throw schemaError(located.path, `combines more than ${maxConjuncts} schemas by allOf and $ref`);
      checkKeywords(located);
      const { schema } = located;
      const parts: (readonly [JsonValue, string])[] = [];
      if (schema["$ref"] !== undefined) {
        const target = this.#references.resolve(located);
        if (target[0] === schema) throw schemaError(pathOf(located.path, "$ref"), "refers to itself");
        parts.push(target);
      }
      parts.push(...(schemaList(located, "allOf") ?? []));
      const more = this.conjunction(parts);
      if (more === undefined) return undefined;
      const plain = this.#stripped(this.#stripped(schema, "$ref"), "allOf");
      if (Object.keys(plain).length > 0) result.set(plain, { schema: plain, path: located.path });
      pending.push(...more.toReversed());
    }
    return [...result.values()];
  }

  /** The schema without a keyword: the same object every time. */
  #stripped(schema: JsonObject, keyword: string): JsonObject {
    if (schema[keyword] === undefined) return schema;
    let known = this.#without.get(keyword);
    if (known === undefined) {
      known = new Map();
      this.#without.set(keyword, known);
    }
    let rest = known.get(schema);
    if (rest === undefined) {
      const { [keyword]: _, ...others } = schema;
      rest = others;
      known.set(schema, rest);
    }
    return rest;
  }

  #plainValue(conjunction: Conjunction): Node {
    const values = allowedValues(conjunction);
    if (values !== undefined) return choice(...values.map((value) => valueNode(value, this.spaces)));
    for (const located of conjunction) {
      const { not } = located.schema;
      if (not !== undefined && !isStringCondition(conjunction)) {
        throw schemaError(
          pathOf(located.path, "not"),
          "is supported beside type: string alone, with enum, const or pattern in it",
        );
      }
    }
    const bits = kindsIn(conjunction);
    const options: Node[] = [];
    if (bits & kinds.object) options.push(objectNode(conjunction, this));
    if (bits & kinds.array) options.push(arrayNode(conjunction, this));
    if (bits & kinds.string) options.push(stringNode(conjunction, this));
    if (bits & kinds.number) options.push(numberNode(conjunction, (bits & kinds.fraction) === 0, this));
    if (bits & kinds.boolean) options.push(text("true"), text("false"));
    if (bits & kinds.null) options.push(text("null"));
    return choice(...options);
  }
}

export function kindsIn(conjunction: Conjunction): number {
  return conjunction.reduce((bits, located) => bits & kindsOf(located), anyKind);
}

function isStringCondition(conjunction: Conjunction): boolean {
  return kindsIn(conjunction) === kinds.string;
}
