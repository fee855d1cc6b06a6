import type { JsonLayout, JsonObject, JsonValue } from "../grammar.js";
import { choice, type Node, nothing, text } from "../node.js";
import type { RuleBuilder } from "../rule-builder.js";
import { arrayNode } from "./array-node.js";
import { Combinations, type Conjunction, kindsIn } from "./combine.js";
import { allowedValues } from "./enumerated.js";
import { type JsonSpaces, jsonSpaces, valueNode } from "./json-text.js";
import { kinds } from "./keywords.js";
import { numberNode } from "./numeric.js";
import { objectNode } from "./object-node.js";
import { schemaError } from "./schema-error.js";
import { stringNode } from "./string-node.js";

const maxNesting = 256;

/**
 * JSON schema (2020-12, and what drafts 4 to 7 spell differently) as rules. Objects whose `additionalProperties` is not
 * given have no others than those declared, and properties come in the order in which they are declared: fewer texts
 * than the schema allows, but each of them valid. Throws `invalid_request` naming the keyword at fault.
 */
export class SchemaCompiler {
  readonly rules: RuleBuilder;
  readonly spaces: JsonSpaces;
  readonly combinations: Combinations;
  readonly #prefix: string;
  readonly #root: JsonValue;
  readonly #ids = new Map<JsonObject, number>();
  #nesting = 0;

  constructor(root: JsonValue, layout: JsonLayout, rules: RuleBuilder, prefix: string) {
    this.#root = root;
    this.rules = rules;
    this.spaces = jsonSpaces(layout);
    this.combinations = new Combinations(root);
    this.#prefix = prefix;
  }

  compile(): Node {
    return this.value(this.conjunction([[this.#root, "#"]]));
  }

  /** Schemas as given, `true` left out; undefined when one is `false`. */
  conjunction(schemas: readonly (readonly [JsonValue, string])[]): Conjunction | undefined {
    return this.combinations.conjunction(schemas);
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
    const branches = this.combinations.branches(conjunction);
    return choice(...branches.map((branch) => this.#plainValue(branch)));
  }

  #plainValue(conjunction: Conjunction): Node {
    const values = allowedValues(conjunction);
    if (values !== undefined) return choice(...values.map((value) => valueNode(value, this.spaces)));
    const bits = kindsIn(conjunction);
    const options: Node[] = [];
    if (bits & kinds.object) options.push(objectNode(conjunction, this));
    if (bits & kinds.array) options.push(arrayNode(conjunction, this));
    if (bits & kinds.string) options.push(stringNode(conjunction, this));
    if (bits & kinds.number) options.push(numberNode(conjunction, bits, this));
    if (bits & kinds.boolean) options.push(text("true"), text("false"));
    if (bits & kinds.null) options.push(text("null"));
    return choice(...options);
  }
}
