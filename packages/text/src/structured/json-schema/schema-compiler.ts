import type { JsonLayout, JsonObject, JsonValue } from "../grammar.js";
import { all, choice, type Node, not, nothing, sequence, text } from "../node.js";
import { lowerRegex } from "../lower-regex.js";
import { parseRegex } from "../../regex/parse-regex.js";
import type { RuleBuilder } from "../rule-builder.js";
import { anyOf } from "../text-choice.js";
import { arrayNode } from "./array-node.js";
import { Combinations } from "./combine.js";
import { type Conjunction, kindsIn } from "./conjunction.js";
import { allowedValues } from "./enumerated.js";
import {
  type JsonSpaces,
  jsonSpaces,
  plainWriting,
  type StringWriting,
  stringWriting,
  valueNode,
} from "./json-text.js";
import { anyKind, kinds } from "./keywords.js";
import { numberNode } from "./numeric.js";
import { objectNode } from "./object-node.js";
import { restricted } from "./restriction.js";
import type { SchemaContext } from "./schema-context.js";
import { schemaError } from "./schema-error.js";
import { stringContent, stringNode } from "./string-node.js";

const maxNesting = 256;

interface TextOptions {
  readonly at?: string | undefined;
  readonly without?: readonly string[] | undefined;
  readonly isNotJson?: boolean | undefined;
}

/** Plain text that cannot be taken for a JSON value, nor for one of the words that stand for one in Python. */
const notJson = lowerRegex(
  parseRegex('(?!\\s*(?:true|false|null|True|False|None)\\s*$)[^\\s\\d\\-{}[\\]"][^]*'),
  plainWriting.encoding,
  false,
);

/**
 * JSON schema (2020-12, and the different spellings of drafts 4 to 7) as rules. Objects without `additionalProperties` get
 * only declared properties, in declaration order: fewer texts than the schema allows, but all of them valid. Throws `invalid_request` naming the keyword at fault.
 */
export class SchemaCompiler implements SchemaContext {
  readonly rules: RuleBuilder;
  readonly spaces: JsonSpaces;
  readonly combinations: Combinations;
  /** Prefix of rule keys that keeps its rules apart from those of other schemas in the grammar. */
  readonly prefix: string;
  readonly writing: StringWriting;
  readonly layout: JsonLayout;
  readonly #root: JsonValue;
  readonly #ids = new Map<JsonObject, number>();
  #nesting = 0;

  constructor(root: JsonValue, layout: JsonLayout, rules: RuleBuilder, prefix: string) {
    this.#root = root;
    this.rules = rules;
    this.spaces = jsonSpaces(layout);
    this.writing = stringWriting(layout);
    this.combinations = new Combinations(root);
    this.prefix = prefix;
    this.layout = layout;
  }

  /** The value at a JSON pointer, the whole schema without one. */
  compile(at = "", withoutStrings = false): Node {
    const excluded = withoutStrings ? [restricted({ kinds: anyKind & ~kinds.string })] : [];
    return this.value(
      this.conjunction([this.#part(at), ...excluded.map((schema) => [schema, "#"] as const)]),
    );
  }

  /** A string at a JSON pointer as plain text, in which none of `without` appears. */
  compileText({ at = "", without = [], isNotJson = false }: TextOptions): Node {
    const parts = this.conjunction([this.#part(at), [restricted({ kinds: kinds.string }), "#"]]);
    const branches = parts === undefined ? [] : this.combinations.branches(parts);
    const { anything } = plainWriting;
    const conditions = without.map((tag) => not(sequence(anything, text(tag), anything)));
    if (isNotJson) conditions.push(notJson);
    const contents = branches.map((branch) => {
      const values = allowedValues(branch);
      if (values === undefined)
        return kindsIn(branch) & kinds.string ? stringContent(branch, plainWriting) : nothing;
      return anyOf(values.filter((value) => typeof value === "string").map((value) => text(value)));
    });
    return choice(...contents.map((content) => all(content, ...conditions)));
  }

  #part(at: string): readonly [JsonValue, string] {
    return at === ""
      ? [this.#root, "#"]
      : this.combinations.references.resolve({ schema: { $ref: `#${at}` }, path: "#" })[0]!;
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
    return this.rules.rule(`${this.prefix}value:${key}`, name, () => {
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
    if (values !== undefined)
      return anyOf(values.map((value) => valueNode(value, this.spaces, this.writing)));
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
