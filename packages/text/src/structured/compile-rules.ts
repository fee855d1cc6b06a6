import { OctavoError } from "@octavo/protocol/errors";
import { analyseRules, checkLeftRecursion, pruneRules } from "./analyse.js";
import { TermStore } from "./automaton/term-store.js";
import { compileGrammarText } from "./ebnf/compile-grammar-text.js";
import type { GrammarSpec, JsonLayout, JsonValue } from "./grammar.js";
import { SchemaCompiler } from "./json-schema/schema-compiler.js";
import { utf8Encoding } from "./json-schema/json-text.js";
import { literalNode } from "./literal.js";
import { choice, type Node, nothing, repeat, type RuleSet, sequence } from "./node.js";
import { lowerRegex } from "./lower-regex.js";
import { parseRegex } from "../regex/parse-regex.js";
import { RuleBuilder } from "./rule-builder.js";
import { taggedText, textUntil } from "./tagged-text.js";
import { anyOf } from "./text-choice.js";

const maxDepth = 32;
const maxChoices = 10_000;
const maxRepeat = 10_000;

/**
 * A specification as checked rules. `specialTokens` are the texts of special tokens, which literals and tags may be.
 * Throws `invalid_request` for what is malformed, not supported, or can match nothing.
 */
export function compileRules(spec: GrammarSpec, specialTokens: ReadonlySet<string>): RuleSet {
  const builder = new RuleBuilder();
  const root = new SpecCompiler(builder, specialTokens).node(spec, 0);
  const rules = resolveIntersections(pruneRules(builder.finish(root)));
  if (rules.rules[rules.root] === nothing) {
    throw new OctavoError(
      "invalid_request",
      "No text can satisfy the constraint: what it asks for contradicts itself or never ends.",
    );
  }
  checkLeftRecursion(rules);
  return { ...rules, analysis: analyseRules(rules.rules) };
}

class SpecCompiler {
  readonly #rules: RuleBuilder;
  readonly #special: ReadonlySet<string>;
  #numSchemas = 0;

  constructor(rules: RuleBuilder, special: ReadonlySet<string>) {
    this.#rules = rules;
    this.#special = special;
  }

  node(spec: GrammarSpec, depth: number): Node {
    if (depth > maxDepth) throw invalid(`nests more than ${maxDepth} parts in each other`);
    const inner = (part: GrammarSpec): Node => this.node(part, depth + 1);
    switch (spec.kind) {
      case "json_schema": {
        const compiler = this.#schemas(spec.schema, spec.layout ?? {});
        return compiler.compile(spec.at, spec.withoutStrings);
      }
      case "schema_text":
        return this.#rule("schema_text", this.#schemas(spec.schema, {}).compileText(spec));
      case "json_object":
        return inner({
          kind: "json_schema",
          schema: { type: "object" },
          ...(spec.layout && { layout: spec.layout }),
        });
      case "regex":
        return this.#rule("regex", lowerRegex(parseRegex(spec.pattern), utf8Encoding(), false));
      case "choice": {
        const { choices } = spec;
        if (choices.length === 0 || choices.length > maxChoices)
          throw invalid(`needs 1 to ${maxChoices} choices, got ${choices.length}`);
        return anyOf(choices.map((text) => literalNode(text, this.#special)));
      }
      case "grammar":
        return compileGrammarText(spec, this.#rules, this.#special);
      case "literal":
        return literalNode(spec.text, this.#special);
      case "any_text":
        return spec.until === undefined
          ? this.#rule("text", utf8Encoding().anything)
          : textUntil(spec.until, this.#rules, this.#special);
      case "sequence":
        return sequence(...spec.parts.map(inner));
      case "any_of":
        if (spec.options.length === 0 || spec.options.length > maxChoices)
          throw invalid(`needs 1 to ${maxChoices} options, got ${spec.options.length}`);
        return choice(...spec.options.map(inner));
      case "repeat": {
        const { min = 0, max = Infinity, separator = "" } = spec;
        if (!(min >= 0 && min <= max && min <= maxRepeat))
          throw invalid("repeats an item with bounds that do not fit");
        const item = this.#rule("item", inner(spec.item));
        if (separator === "" || max === 0) return repeat(item, min, max);
        const more = repeat(
          sequence(literalNode(separator, this.#special), item),
          Math.max(0, min - 1),
          max - 1,
        );
        return repeat(sequence(item, more), Math.min(min, 1), 1);
      }
      case "tagged_text":
        return taggedText(spec, this.#rules, this.#special, inner);
    }
  }

  #schemas(schema: JsonValue, layout: JsonLayout): SchemaCompiler {
    return new SchemaCompiler(schema, layout, this.#rules, `${this.#numSchemas++}:`);
  }

  #rule(name: string, node: Node): Node {
    const rule = this.#rules.reserve(name);
    this.#rules.define(rule, node);
    return { op: "rule", rule };
  }
}

/** Finds intersections that match nothing and prunes whatever needs them. */
function resolveIntersections(set: RuleSet): RuleSet {
  const store = new TermStore(set);
  let found = false;
  const resolve = (node: Node): Node => {
    switch (node.op) {
      case "all":
      case "not":
        store.startWork();
        if (store.build(node) !== store.empty) return node;
        found = true;
        return nothing;
      case "sequence":
      case "choice":
        return { ...node, items: node.items.map(resolve) };
      case "repeat":
        return { ...node, item: resolve(node.item) };
      case "bytes":
      case "text":
      case "rule":
      case "automaton":
        return node;
    }
  };
  const rules = set.rules.map(resolve);
  return found ? pruneRules({ ...set, rules }) : set;
}

function invalid(what: string): OctavoError {
  return new OctavoError("invalid_request", `The constraint ${what}.`);
}
