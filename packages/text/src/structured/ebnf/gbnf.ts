import { type CodeSet, complement, unite } from "../../regex/code-points.js";
import { type GrammarExpression, grammarError, maxNesting, type ParsedGrammar } from "./expression.js";
import { Scanner } from "./scanner.js";

/**
 * GBNF as llama.cpp and XGrammar read it: `name ::= alternatives`, "literals", [classes], `.`, groups, `* + ? {m,n}`, `#`
 * comments. The grammar starts at `root`.
 */
export function parseGbnf(source: string): ParsedGrammar {
  return new GbnfParser(source).parse();
}

class GbnfParser {
  readonly #scanner: Scanner;
  #nesting = 0;

  constructor(source: string) {
    this.#scanner = new Scanner(source);
  }

  parse(): ParsedGrammar {
    const scanner = this.#scanner;
    const rules = new Map<string, GrammarExpression>();
    this.#space(true);
    while (!scanner.isAtEnd) {
      const name = scanner.match(/([A-Za-z_][\w.-]*)[ \t]*::=/y)?.[1];
      if (name === undefined) throw scanner.fail("expected a rule such as root ::= ...");
      if (rules.has(name)) throw scanner.fail(`defines the rule ${JSON.stringify(name)} twice`);
      rules.set(name, this.#alternatives());
      this.#space(true);
    }
    if (!rules.has("root")) throw grammarError(1, 'there is no rule "root", where a grammar starts');
    return { rules, start: "root" };
  }

  /** Skips spaces and comments; and line ends, but with `overLines` false those before a rule or the end of the text. */
  #space(overLines: boolean): void {
    const scanner = this.#scanner;
    for (;;) {
      if (scanner.match(/[ \t]+|#[^\n]*/y) !== undefined) continue;
      const before = scanner.index;
      if (scanner.match(/[\r\n]+/y) === undefined) return;
      if (overLines) continue;
      while (scanner.match(/\s+|#[^\n]*/y) !== undefined);
      if (!scanner.isAtEnd && (this.#nesting > 1 || !scanner.sees(ruleStart))) continue;
      scanner.index = before;
      return;
    }
  }

  #alternatives(): GrammarExpression {
    if (++this.#nesting > maxNesting) throw this.#scanner.fail(`nests groups more than ${maxNesting} deep`);
    const items = [this.#sequence()];
    while (this.#scanner.accept("|")) items.push(this.#sequence());
    this.#nesting -= 1;
    return items.length === 1 ? items[0]! : { kind: "choice", items };
  }

  #sequence(): GrammarExpression {
    const items: GrammarExpression[] = [];
    for (;;) {
      this.#space(false);
      const item = this.#item();
      if (item === undefined) return items.length === 1 ? items[0]! : { kind: "sequence", items };
      let repeated = item;
      for (let bounds = this.#scanner.bounds(); bounds !== undefined; bounds = this.#scanner.bounds())
        repeated = { kind: "repeat", item: repeated, ...bounds };
      items.push(repeated);
    }
  }

  #item(): GrammarExpression | undefined {
    const scanner = this.#scanner;
    if (scanner.accept('"')) return { kind: "text", text: this.#literal() };
    if (scanner.accept("[")) return { kind: "set", set: this.#class() };
    if (scanner.accept(".")) return { kind: "set", set: [0, 0x10ffff] };
    if (scanner.accept("(")) {
      const group = this.#alternatives();
      this.#space(true);
      if (!scanner.accept(")")) throw scanner.fail("has a ( without its )");
      return group;
    }
    const name = scanner.sees(ruleStart) ? undefined : scanner.match(/[A-Za-z_][\w.-]*/y)?.[0];
    if (name !== undefined) return { kind: "rule", name, line: scanner.line };
    if (scanner.isAtEnd || /[|)\r\n]/.test(scanner.next) || scanner.sees(ruleStart)) return undefined;
    throw scanner.fail(`has an unexpected ${JSON.stringify(scanner.next)}`);
  }

  #literal(): string {
    const scanner = this.#scanner;
    let text = "";
    while (!scanner.accept('"')) {
      if (scanner.isAtEnd || scanner.next === "\n") throw scanner.fail('has a " without its end');
      text += String.fromCodePoint(scanner.accept("\\") ? scanner.escape() : scanner.codePoint());
    }
    return text;
  }

  #class(): CodeSet {
    const scanner = this.#scanner;
    const isNegated = scanner.accept("^");
    const members: CodeSet[] = [];
    const member = (): number | CodeSet => {
      if (!scanner.accept("\\")) return scanner.codePoint();
      const shorthand = scanner.match(/[dws]/y)?.[0];
      return shorthand === undefined ? scanner.escape() : shorthands[shorthand]!;
    };
    while (!scanner.accept("]")) {
      if (scanner.isAtEnd || scanner.next === "\n") throw scanner.fail("has a [ without its ]");
      const first = member();
      const isRange =
        typeof first === "number" && scanner.next === "-" && scanner.source[scanner.index + 1] !== "]";
      if (!isRange) {
        members.push(typeof first === "number" ? [first, first] : first);
        continue;
      }
      scanner.index += 1;
      const last = member();
      if (typeof last !== "number" || last < first) throw scanner.fail("has a class with a range reversed");
      members.push([first, last]);
    }
    const set = unite(...members);
    return isNegated ? complement(set) : set;
  }
}

const ruleStart = /[A-Za-z_][\w.-]*[ \t]*::=/y;

const shorthands: Readonly<Record<string, CodeSet>> = {
  d: [0x30, 0x39],
  w: [0x30, 0x39, 0x41, 0x5a, 0x5f, 0x5f, 0x61, 0x7a],
  s: [0x09, 0x0d, 0x20, 0x20],
};
