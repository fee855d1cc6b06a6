import { type CodeSet, complement, unite } from "../../regex/code-points.js";
import { type GrammarExpression, grammarError, type ParsedGrammar } from "./expression.js";
import { NotationParser } from "./notation-parser.js";
import type { Scanner } from "./scanner.js";

/**
 * GBNF as llama.cpp and XGrammar read it: `name ::= alternatives`, "literals", [classes], `.`, groups, `* + ? {m,n}`, `#`
 * comments. The grammar starts at `root`.
 */
export function parseGbnf(source: string): ParsedGrammar {
  return new GbnfParser(source).parse();
}

const ruleStart = /[A-Za-z_][\w.-]*[ \t]*::=/y;

class GbnfParser extends NotationParser {
  constructor(source: string) {
    super(source, /[ \t]+|#[^\n]*/y, ruleStart);
  }

  parse(): ParsedGrammar {
    const { scanner } = this;
    const rules = new Map<string, GrammarExpression>();
    this.space(true);
    while (!scanner.isAtEnd) {
      const name = scanner.match(/([A-Za-z_][\w.-]*)[ \t]*::=/y)?.[1];
      if (name === undefined) throw scanner.fail("expected a rule such as root ::= ...");
      if (rules.has(name)) throw scanner.fail(`defines the rule ${JSON.stringify(name)} twice`);
      rules.set(name, this.alternatives());
      this.space(true);
    }
    if (!rules.has("root")) throw grammarError(1, 'there is no rule "root", where a grammar starts');
    return { rules, start: "root" };
  }

  /** As in llama.cpp, blanks may stand before a repetition. */
  protected bounds(): ReturnType<Scanner["bounds"]> {
    this.space(false);
    return this.scanner.bounds();
  }

  protected item(): GrammarExpression | undefined {
    const { scanner } = this;
    if (scanner.accept('"')) return { kind: "text", text: this.literal() };
    if (scanner.accept("[")) return { kind: "set", set: this.#class() };
    if (scanner.accept(".")) return { kind: "set", set: [0, 0x10ffff] };
    if (scanner.accept("(")) return this.group("(", ")");
    const name = scanner.sees(ruleStart) ? undefined : scanner.match(/[A-Za-z_][\w.-]*/y)?.[0];
    if (name !== undefined) return { kind: "rule", name, line: scanner.line };
    if (scanner.isAtEnd || /[|)\r\n]/.test(scanner.next) || scanner.sees(ruleStart)) return undefined;
    throw scanner.fail(`has an unexpected ${JSON.stringify(scanner.next)}`);
  }

  #class(): CodeSet {
    const { scanner } = this;
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

const shorthands: Readonly<Record<string, CodeSet>> = {
  d: [0x30, 0x39],
  w: [0x30, 0x39, 0x41, 0x5a, 0x5f, 0x5f, 0x61, 0x7a],
  s: [0x09, 0x0d, 0x20, 0x20],
};
