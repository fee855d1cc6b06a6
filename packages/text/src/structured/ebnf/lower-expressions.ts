import { CharacterSet } from "../../regex/character-set.js";
import { type CodeSet, intersect, pairs, unite } from "../../regex/code-points.js";
import type { Regex } from "../../regex/syntax-tree.js";
import type { StringWriting } from "../json-schema/json-text.js";
import { literalNode } from "../literal.js";
import { choice, type Node, repeat, sequence } from "../node.js";
import { lowerRegex } from "../lower-regex.js";
import type { RuleBuilder } from "../rule-builder.js";
import { anyOf } from "../text-choice.js";
import { type GrammarExpression, grammarError, type ParsedGrammar } from "./expression.js";

/** Most parts of a grammar whose rules stand where they are used. */
const maxInPlace = 20_000;

/**
 * The rules of a written grammar; a rule that directly begins with itself becomes a repetition. `in place` leaves no
 * references to rules, as intersections need; other recursion is refused there.
 */
export function lowerExpressions(
  grammar: ParsedGrammar,
  writing: StringWriting,
  special: ReadonlySet<string>,
  target: { readonly rules: RuleBuilder } | "in place",
): Node {
  const { terminals } = grammar;
  const references = new Map<string, Node>();
  const open = new Set<string>();
  let numInPlace = 0;
  const body = (name: string, expression: GrammarExpression): Node => {
    const lowering = terminals?.has(name) === true ? plain : spaced;
    return lowering.node(withoutLeftRecursion(name, expression));
  };
  const refer = (name: string, line: number): Node | undefined => {
    const expression = grammar.rules.get(name);
    if (target !== "in place" || expression === undefined) return references.get(name);
    if (open.has(name))
      throw grammarError(
        line,
        `uses ${JSON.stringify(name.slice(0, 60))} within itself, which cannot be kept to in the form in which this model writes calls`,
      );
    if (++numInPlace > maxInPlace)
      throw grammarError(line, "makes the grammar too large; give a simpler one");
    open.add(name);
    const node = body(name, expression);
    open.delete(name);
    return node;
  };
  const plain = new Lowering(refer, writing, special, undefined);
  if (target !== "in place")
    for (const name of grammar.rules.keys())
      references.set(name, { op: "rule", rule: target.rules.reserve(name) });
  const ignored = (grammar.ignored ?? []).map((expression) => plain.node(expression));
  const between = ignored.length === 0 ? undefined : repeat(choice(...ignored), 0, Infinity);
  const spaced = new Lowering(refer, writing, special, between, terminals);
  if (target !== "in place")
    for (const [name, expression] of grammar.rules) {
      const reference = references.get(name);
      if (reference?.op === "rule") target.rules.define(reference.rule, body(name, expression));
    }
  const start = refer(grammar.start, 1)!;
  return between === undefined
    ? start
    : sequence(between, start, terminals?.has(grammar.start) === true ? between : sequence());
}

class Lowering {
  readonly #refer: (name: string, line: number) => Node | undefined;
  readonly #writing: StringWriting;
  readonly #special: ReadonlySet<string>;
  /** What may follow each terminal. */
  readonly #between: Node | undefined;
  readonly #terminals: ReadonlySet<string> | undefined;

  constructor(
    refer: (name: string, line: number) => Node | undefined,
    writing: StringWriting,
    special: ReadonlySet<string>,
    between: Node | undefined,
    terminals?: ReadonlySet<string>,
  ) {
    this.#refer = refer;
    this.#writing = writing;
    this.#special = special;
    this.#between = between;
    this.#terminals = terminals;
  }

  node(expression: GrammarExpression): Node {
    const { encoding, write } = this.#writing;
    switch (expression.kind) {
      case "text":
        return this.#terminal(
          expression.ignoreCase === true
            ? sequence(
                ...Array.from(expression.text, (character) =>
                  encoding.characters(anyCase(single(character))),
                ),
              )
            : literalNode(write(expression.text), this.#special),
        );
      case "set":
        return this.#terminal(encoding.characters(expression.set));
      case "regex":
        return this.#terminal(
          lowerRegex(
            expression.ignoreCase === true ? foldRegex(expression.regex) : expression.regex,
            encoding,
            false,
          ),
        );
      case "rule": {
        const reference = this.#refer(expression.name, expression.line);
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
