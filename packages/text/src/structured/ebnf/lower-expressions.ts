import { CharacterSet } from "../../regex/character-set.js";
import { type CodeSet, intersect, pairs, unite } from "../../regex/code-points.js";
import type { Regex } from "../../regex/syntax-tree.js";
import { utf8Node } from "../utf8-node.js";
import { utf8Encoding } from "../json-schema/json-text.js";
import { literalNode } from "../literal.js";
import { choice, type Node, repeat, sequence } from "../node.js";
import { lowerRegex } from "../lower-regex.js";
import type { RuleBuilder } from "../rule-builder.js";
import { anyOf } from "../text-choice.js";
import { type GrammarExpression, grammarError, type ParsedGrammar } from "./expression.js";

/** The rules of a written grammar; a rule that directly begins with itself becomes a repetition. */
export function lowerExpressions(
  grammar: ParsedGrammar,
  rules: RuleBuilder,
  special: ReadonlySet<string>,
): Node {
  const { terminals } = grammar;
  const references = new Map<string, Node>();
  for (const name of grammar.rules.keys()) references.set(name, { op: "rule", rule: rules.reserve(name) });
  const plain = new Lowering(references, special, undefined);
  const ignored = (grammar.ignored ?? []).map((expression) => plain.node(expression));
  const between = ignored.length === 0 ? undefined : repeat(choice(...ignored), 0, Infinity);
  const spaced = new Lowering(references, special, between, terminals);
  for (const [name, expression] of grammar.rules) {
    const lowering = terminals?.has(name) === true ? plain : spaced;
    const reference = references.get(name)!;
    if (reference.op === "rule")
      rules.define(reference.rule, lowering.node(withoutLeftRecursion(name, expression)));
  }
  const start = references.get(grammar.start)!;
  return between === undefined
    ? start
    : sequence(between, start, terminals?.has(grammar.start) === true ? between : sequence());
}

class Lowering {
  readonly #references: ReadonlyMap<string, Node>;
  readonly #special: ReadonlySet<string>;
  /** What may follow each terminal. */
  readonly #between: Node | undefined;
  readonly #terminals: ReadonlySet<string> | undefined;

  constructor(
    references: ReadonlyMap<string, Node>,
    special: ReadonlySet<string>,
    between: Node | undefined,
    terminals?: ReadonlySet<string>,
  ) {
    this.#references = references;
    this.#special = special;
    this.#between = between;
    this.#terminals = terminals;
  }

  node(expression: GrammarExpression): Node {
    switch (expression.kind) {
      case "text":
        return this.#terminal(
          expression.ignoreCase === true
            ? sequence(...Array.from(expression.text, (character) => utf8Node(anyCase(single(character)))))
            : literalNode(expression.text, this.#special),
        );
      case "set":
        return this.#terminal(utf8Node(expression.set));
      case "regex":
        return this.#terminal(
          lowerRegex(
            expression.ignoreCase === true ? foldRegex(expression.regex) : expression.regex,
            utf8Encoding(),
            false,
          ),
        );
      case "rule": {
        const reference = this.#references.get(expression.name);
        if (reference === undefined)
          throw grammarError(
            expression.line,
            `uses ${JSON.stringify(expression.name.slice(0, 60))}, which is not defined`,
          );
        return this.#terminals?.has(expression.name) === true ? this.#terminal(reference) : reference;
      }
      case "sequence":
        return sequence(...expression.items.map((item) => this.node(item)));
      case "choice":
        return anyOf(expression.items.map((item) => this.node(item)));
      case "repeat":
        return repeat(this.node(expression.item), expression.min, expression.max);
    }
  }

  #terminal(node: Node): Node {
    return this.#between === undefined ? node : sequence(node, this.#between);
  }
}

/** `a: a x | y` is `a: y x*`. */
function withoutLeftRecursion(name: string, expression: GrammarExpression): GrammarExpression {
  const starts: GrammarExpression[] = [];
  const continuations: GrammarExpression[] = [];
  for (const alternative of alternativesOf(expression)) {
    const items = itemsOf(alternative);
    const [first, ...rest] = items;
    if (first?.kind === "rule" && first.name === name) {
      if (rest.length > 0) continuations.push({ kind: "sequence", items: rest });
    } else starts.push(alternative);
  }
  if (continuations.length === 0) return expression;
  const more: GrammarExpression = {
    kind: "repeat",
    item: { kind: "choice", items: continuations },
    min: 0,
    max: Infinity,
  };
  return { kind: "sequence", items: [{ kind: "choice", items: starts }, more] };
}

function alternativesOf(expression: GrammarExpression): readonly GrammarExpression[] {
  return expression.kind === "choice" ? expression.items.flatMap(alternativesOf) : [expression];
}

function itemsOf(expression: GrammarExpression): readonly GrammarExpression[] {
  return expression.kind === "sequence" ? expression.items.flatMap(itemsOf) : [expression];
}

function single(character: string): CodeSet {
  const codePoint = character.codePointAt(0)!;
  return [codePoint, codePoint];
}

/** Larger sets hold whole scripts, both cases included. */
const mostFolded = 4096;

function anyCase(set: CodeSet): CodeSet {
  const size = pairs(set).reduce((sum, [first, last]) => sum + last - first + 1, 0);
  const folded = size > mostFolded ? intersect(set, [0x41, 0x5a, 0x61, 0x7a]) : set;
  const variants: [number, number][] = [];
  for (const [first, last] of pairs(folded)) {
    for (let codePoint = first; codePoint <= last; codePoint += 1) {
      const character = String.fromCodePoint(codePoint);
      for (const variant of [character.toLowerCase(), character.toUpperCase()]) {
        const other = variant.codePointAt(0)!;
        if (variant.length === String.fromCodePoint(other).length) variants.push([other, other]);
      }
    }
  }
  return unite(set, variants.toSorted((a, b) => a[0] - b[0]).flat());
}

function foldRegex(regex: Regex): Regex {
  switch (regex.kind) {
    case "set":
      return { ...regex, set: CharacterSet.of(anyCase(regex.set.ranges)) };
    case "sequence":
    case "choice":
      return { ...regex, items: regex.items.map(foldRegex) };
    case "repeat":
    case "look":
    case "atomic":
      return { ...regex, item: foldRegex(regex.item) };
    case "anchor":
      return regex;
  }
}
