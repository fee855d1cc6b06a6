import { anything } from "../../regex/character-set.js";
import { ecmaScript } from "../../regex/dialects.js";
import { parseRegex } from "../../regex/parse-regex.js";
import { type GrammarExpression, grammarError, type ParsedGrammar } from "./expression.js";
import { NotationParser } from "./notation-parser.js";

/** Terminals of Lark's `common` library. */
const common: Readonly<Record<string, string>> = {
  DIGIT: "[0-9]",
  HEXDIGIT: "[0-9A-Fa-f]",
  INT: "[0-9]+",
  SIGNED_INT: "[+-]?[0-9]+",
  DECIMAL: "[0-9]+\\.[0-9]*|\\.[0-9]+",
  FLOAT: "[0-9]+[eE][+-]?[0-9]+|(?:[0-9]+\\.[0-9]*|\\.[0-9]+)(?:[eE][+-]?[0-9]+)?",
  SIGNED_FLOAT: "[+-]?(?:[0-9]+[eE][+-]?[0-9]+|(?:[0-9]+\\.[0-9]*|\\.[0-9]+)(?:[eE][+-]?[0-9]+)?)",
  NUMBER: "[0-9]+(?:\\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|\\.[0-9]+(?:[eE][+-]?[0-9]+)?",
  SIGNED_NUMBER: "[+-]?(?:[0-9]+(?:\\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|\\.[0-9]+(?:[eE][+-]?[0-9]+)?)",
  ESCAPED_STRING: '"(?:[^"\\\\\\n]|\\\\.)*"',
  LCASE_LETTER: "[a-z]",
  UCASE_LETTER: "[A-Z]",
  LETTER: "[A-Za-z]",
  WORD: "[A-Za-z]+",
  CNAME: "[_A-Za-z][_A-Za-z0-9]*",
  WS_INLINE: "[ \\t]+",
  WS: "[ \\t\\f\\r\\n]+",
  CR: "\\r",
  LF: "\\n",
  NEWLINE: "(?:\\r?\\n)+",
};

/**
 * Lark's notation: rules and TERMINALS, "strings", "strings"i, /regular expressions/, "a".."z", ( ) [ ] ? * + ~,
 * `->` aliases, `%ignore`, `%import common`. Characters are matched one by one rather than by a lexer, so that terminals
 * have no priorities. The grammar starts at `start`.
 */
export function parseLark(source: string): ParsedGrammar {
  return new LarkParser(source).parse();
}

const statementStart = /(?:[?!]{0,2}[A-Za-z_]\w*(?:\.-?\d+)?[ \t]*:)|%/y;

class LarkParser extends NotationParser {
  readonly #rules = new Map<string, GrammarExpression>();
  readonly #terminals = new Set<string>();
  readonly #ignored: GrammarExpression[] = [];

  constructor(source: string) {
    super(source, /[ \t]+|\/\/[^\n]*|#[^\n]*/y, statementStart);
  }

  parse(): ParsedGrammar {
    const { scanner } = this;
    this.space(true);
    while (!scanner.isAtEnd) {
      if (scanner.accept("%")) this.#directive();
      else {
        const name = scanner.match(/[?!]{0,2}([A-Za-z_]\w*)(?:\.-?\d+)?[ \t]*:/y)?.[1];
        if (name === undefined) {
          if (scanner.sees(/[?!]{0,2}\w+\{/y))
            throw scanner.fail("has a rule template, which is not supported");
          throw scanner.fail("expected a rule such as start: ... (or, in GBNF, root ::= ...)");
        }
        this.#define(name, this.alternatives());
      }
      this.space(true);
    }
    if (!this.#rules.has("start")) throw grammarError(1, 'there is no rule "start", where a grammar starts');
    return { rules: this.#rules, start: "start", ignored: this.#ignored, terminals: this.#terminals };
  }

  #define(name: string, expression: GrammarExpression): void {
    if (this.#rules.has(name)) throw this.scanner.fail(`defines ${JSON.stringify(name)} twice`);
    this.#rules.set(name, expression);
    if (/^_*[A-Z]/.test(name)) this.#terminals.add(name);
  }

  #directive(): void {
    const { scanner } = this;
    if (scanner.match(/ignore\b/y) !== undefined) {
      this.#ignored.push(this.alternatives());
      return;
    }
    const many = scanner.match(/import[ \t]+common[ \t]*\(([\w\s,]*)\)/y);
    if (many !== undefined) {
      for (const name of many[1]!.split(",").map((part) => part.trim()))
        if (name !== "") this.#import(name, name);
      return;
    }
    const one = scanner.match(/import[ \t]+common\.(\w+)(?:[ \t]*->[ \t]*(\w+))?/y);
    if (one === undefined) {
      const word = scanner.match(/\w*/y)?.[0] ?? "";
      throw scanner.fail(`has %${word.slice(0, 20)}, of which only %ignore and %import common are supported`);
    }
    this.#import(one[1]!, one[2] ?? one[1]!);
  }

  #import(name: string, alias: string): void {
    const pattern = Object.hasOwn(common, name) ? common[name] : undefined;
    if (pattern === undefined)
      throw this.scanner.fail(`imports common.${name.slice(0, 40)}, which is not known`);
    this.#define(alias, { kind: "regex", regex: parseRegex(pattern) });
    this.#terminals.add(alias);
  }

  protected override alternatives(): GrammarExpression {
    this.space(false);
    this.scanner.accept("|");
    return super.alternatives();
  }

  protected bounds(): { readonly min: number; readonly max: number } | undefined {
    const { scanner } = this;
    const tilde = scanner.match(/[ \t]*~[ \t]*(\d{1,9})(?:\.\.(\d{1,9}))?/y);
    if (tilde !== undefined) return scanner.checkBounds(Number(tilde[1]), Number(tilde[2] ?? tilde[1]));
    return scanner.sees(/[*+?]/y) ? scanner.bounds() : undefined;
  }

  protected item(): GrammarExpression | undefined {
    const { scanner } = this;
    while (scanner.match(/->[ \t]*\w+/y) !== undefined) this.space(false);
    if (scanner.accept('"')) return this.#text();
    if (scanner.next === "/" && scanner.source[scanner.index + 1] !== "/") return this.#regex();
    if (scanner.accept("(")) return this.group("(", ")");
    if (scanner.accept("[")) return { kind: "repeat", item: this.group("[", "]"), min: 0, max: 1 };
    if (scanner.isAtEnd || scanner.sees(/[|)\]\r\n%]/y) || scanner.sees(statementStart)) return undefined;
    const name = scanner.match(/[A-Za-z_]\w*/y)?.[0];
    if (name === undefined) throw scanner.fail(`has an unexpected ${JSON.stringify(scanner.next)}`);
    if (scanner.next === "{") throw scanner.fail("uses a rule template, which is not supported");
    return { kind: "rule", name, line: scanner.line };
  }

  #text(): GrammarExpression {
    const { scanner } = this;
    const text = this.literal();
    if (scanner.match(/[ \t]*\.\.[ \t]*"/y) === undefined)
      return { kind: "text", text, ignoreCase: this.#ignoresCase() };
    const last = this.literal();
    const [from, to] = [text.codePointAt(0), last.codePointAt(0)];
    if (from === undefined || to === undefined || Array.from(text + last).length !== 2 || to < from)
      throw scanner.fail("has a range that is not of two characters in order");
    return { kind: "set", set: [from, to] };
  }

  #ignoresCase(): boolean {
    return this.scanner.match(/i(?!\w)/y) !== undefined;
  }

  #regex(): GrammarExpression {
    const { scanner } = this;
    const found = scanner.match(/\/((?:[^/\\\n]|\\.)+)\/([imslux]*)/y);
    if (found === undefined) throw scanner.fail("has a / without its end");
    const flags = found[2]!;
    if (/[mlx]/.test(flags))
      throw scanner.fail(`has a regular expression with the flags ${flags}; only i, s and u are supported`);
    const dialect = flags.includes("s") ? { ...ecmaScript, dot: anything } : ecmaScript;
    return { kind: "regex", regex: parseRegex(found[1]!, dialect), ignoreCase: flags.includes("i") };
  }
}
