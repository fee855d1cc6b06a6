import type { JsonLayout, JsonValue } from "../grammar.js";
import type { Node } from "../node.js";
import type { RuleBuilder } from "../rule-builder.js";
import type { Conjunction, SchemaCombiner } from "./conjunction.js";
import type { JsonSpaces, StringWriting } from "./json-text.js";

/** What the nodes of one kind of value are compiled with; the schema compiler is one. */
export interface SchemaContext {
  readonly rules: RuleBuilder;
  readonly spaces: JsonSpaces;
  readonly combinations: SchemaCombiner;
  /** Prefix of rule keys that keeps its rules apart from those of other schemas in the grammar. */
  readonly prefix: string;
  readonly writing: StringWriting;
  readonly layout: JsonLayout;
  /** Schemas as given, `true` left out; undefined when one is `false`. */
  conjunction(schemas: readonly (readonly [JsonValue, string])[]): Conjunction | undefined;
  /** The rule for a value under all of these schemas. */
  value(conjunction: Conjunction | undefined): Node;
}
