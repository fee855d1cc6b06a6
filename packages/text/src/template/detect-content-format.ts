import type { ContentFormat } from "./chat-template.js";
import { parseTemplate } from "./jinja/parser.js";
import type { Expression, Statement, AssignmentTarget } from "./jinja/syntax-tree.js";

/**
 * Whether a template iterates over a message's content part by part, which is how vLLM's
 * `--chat-template-content-format auto` decides. Throws `template_error` for a template that does not parse.
 */
export function detectContentFormat(source: string): ContentFormat {
  return contentFormatOf(parseTemplate(source));
}

/** As `detectContentFormat`, of a template that is parsed already. */
export function contentFormatOf(template: readonly Statement[]): ContentFormat {
  const finder = new ContentLoopFinder();
  // variables may be set from ones that are recognised later in the text, as in macros: a second look settles them
  finder.visit(template);
  finder.visit(template);
  return finder.found ? "parts" : "string";
}

class ContentLoopFinder {
  found = false;
  readonly #lists = new Set(["messages"]);
  readonly #messages = new Set<string>();
  readonly #contents = new Set<string>();

  visit(statements: readonly Statement[]): void {
    for (const statement of statements) this.#statement(statement);
  }

  #statement(statement: Statement): void {
    switch (statement.kind) {
      case "for":
        if (this.#isContent(statement.iterable)) this.found = true;
        if (this.#isList(statement.iterable)) this.#learn(this.#messages, statement.target);
        this.visit(statement.body);
        this.visit(statement.otherwise);
        return;
      case "set":
        if (this.#isList(statement.value)) this.#learn(this.#lists, statement.target);
        if (this.#isMessage(statement.value)) this.#learn(this.#messages, statement.target);
        if (this.#isContent(statement.value)) this.#learn(this.#contents, statement.target);
        return;
      case "macro":
        // a macro that renders content is handed it as its first parameter, by whatever name
        for (const { name } of statement.parameters) if (name === "content") this.#contents.add(name);
        this.visit(statement.body);
        return;
      case "if":
        for (const { body } of statement.branches) this.visit(body);
        this.visit(statement.otherwise);
        return;
      case "set-block":
      case "call-block":
      case "filter-block":
      case "with":
      case "generation":
        this.visit(statement.body);
        return;
      case "text":
      case "output":
      case "break":
      case "continue":
    }
  }

  #learn(names: Set<string>, target: AssignmentTarget): void {
    if (target.kind === "name") names.add(target.name);
    else if (target.kind === "namespace") names.add(`${target.object}.${target.attribute}`);
  }

  #isList(expression: Expression): boolean {
    const base = unwrapped(expression);
    return this.#lists.has(pathOf(base));
  }

  #isMessage(expression: Expression): boolean {
    if (this.#messages.has(pathOf(expression))) return true;
    return expression.kind === "item" && this.#lists.has(pathOf(expression.object));
  }

  #isContent(expression: Expression): boolean {
    const base = unwrapped(expression);
    if (this.#contents.has(pathOf(base))) return true;
    if (base.kind === "attribute") return base.name === "content" && this.#isMessage(base.object);
    if (base.kind !== "item") return false;
    return base.key.kind === "constant" && base.key.value === "content" && this.#isMessage(base.object);
  }
}

/** Without slices and filters, which iterate over the same items. */
function unwrapped(expression: Expression): Expression {
  if (expression.kind === "slice") return unwrapped(expression.object);
  return expression.kind === "filter" && expression.operand !== undefined
    ? unwrapped(expression.operand)
    : expression;
}

/** `name` or `namespace.name`; empty for anything else. */
function pathOf(expression: Expression): string {
  if (expression.kind === "name") return expression.name;
  return expression.kind === "attribute" && expression.object.kind === "name"
    ? `${expression.object.name}.${expression.name}`
    : "";
}
