import { type GrammarExpression, maxNesting, type ParsedGrammar } from "./expression.js";
import { Scanner } from "./scanner.js";

/** What GBNF and Lark have in common: alternatives of sequences of repeated items, over lines, with comments. */
export abstract class NotationParser {
  protected readonly scanner: Scanner;
  /** Sticky expressions: a run of blanks or a comment, and what begins the next rule. */
  readonly #blank: RegExp;
  readonly #ruleStart: RegExp;
  #nesting = 0;

  constructor(source: string, blank: RegExp, ruleStart: RegExp) {
    this.scanner = new Scanner(source);
    this.#blank = blank;
    this.#ruleStart = ruleStart;
  }

  abstract parse(): ParsedGrammar;

  /** One item; undefined where a sequence ends. */
  protected abstract item(): GrammarExpression | undefined;

  /** How often the item before is repeated. */
  protected abstract bounds(): { readonly min: number; readonly max: number } | undefined;

  /** Skips blanks and comments; and line ends, but with `overLines` false those before a rule or the end of the text. */
  protected space(overLines: boolean): void {
    const { scanner } = this;
    for (;;) {
      if (scanner.match(this.#blank) !== undefined) continue;
      const before = scanner.index;
      if (scanner.match(/[\r\n]+/y) === undefined) return;
      if (overLines) continue;
      while (scanner.match(/\s+/y) !== undefined || scanner.match(this.#blank) !== undefined);
      if (!scanner.isAtEnd && (this.#nesting > 1 || !scanner.sees(this.#ruleStart))) continue;
      scanner.index = before;
      return;
    }
  }

  protected alternatives(): GrammarExpression {
    if (++this.#nesting > maxNesting) throw this.scanner.fail(`nests groups more than ${maxNesting} deep`);
    const items = [this.#sequence()];
    while (this.scanner.accept("|")) items.push(this.#sequence());
    this.#nesting -= 1;
    return items.length === 1 ? items[0]! : { kind: "choice", items };
  }

  #sequence(): GrammarExpression {
    const items: GrammarExpression[] = [];
    for (;;) {
      this.space(false);
      let item = this.item();
      if (item === undefined) return items.length === 1 ? items[0]! : { kind: "sequence", items };
      for (let bounds = this.bounds(); bounds !== undefined; bounds = this.bounds())
        item = { kind: "repeat", item, ...bounds };
      items.push(item);
    }
  }

  /** The alternatives of a group whose bracket was taken, and the one that closes it. */
  protected group(open: string, close: string): GrammarExpression {
    const group = this.alternatives();
    this.space(true);
    if (!this.scanner.accept(close)) throw this.scanner.fail(`has a ${open} without its ${close}`);
    return group;
  }

  /** A text in quotes, of which the first was taken. */
  protected literal(): string {
    const { scanner } = this;
    let text = "";
    while (!scanner.accept('"')) {
      if (scanner.isAtEnd || scanner.next === "\n") throw scanner.fail('has a " without its end');
      text += String.fromCodePoint(scanner.accept("\\") ? scanner.escape() : scanner.codePoint());
    }
    return text;
  }
}
