import { tokenize } from "./lexer.js";
import { parseExpression, parseTuple, parseCallArguments } from "./expression-parser.js";
import type { Expression, FilterExpression, Parameter, Statement, AssignmentTarget } from "./syntax-tree.js";
import { templateError } from "./template-error.js";
import { TokenStream } from "./token-stream.js";

/** Parses a template. Throws `template_error` with the line. */
export function parseTemplate(source: string): readonly Statement[] {
  const stream = new TokenStream(tokenize(source));
  const body = parseBody(stream, []);
  if (!stream.is("end")) throw stream.unexpected("text or a tag");
  return body;
}

/** Statements up to a block whose name is one of `ends`, which is left to the caller. */
function parseBody(stream: TokenStream, ends: readonly string[]): Statement[] {
  return stream.nested(() => {
    const body: Statement[] = [];
    while (!stream.is("end")) {
      const token = stream.current;
      if (stream.accept("text")) body.push({ kind: "text", line: token.line, text: token.text });
      else if (stream.accept("output-begin")) {
        body.push({ kind: "output", line: token.line, expression: parseTuple(stream) });
        stream.expect("output-end");
      } else if (token.kind === "block-begin") {
        if (ends.includes(stream.following.text) && stream.following.kind === "name") return body;
        stream.next();
        body.push(parseStatement(stream));
      } else throw stream.unexpected("text or a tag");
    }
    if (ends.length > 0) throw stream.unexpected(`{% ${ends.join(" or ")} %}`);
    return body;
  });
}

/** The rest of an opening tag, what it encloses, and the closing tag; `name` may stand in the latter, as macros have it. */
function parseBlock(stream: TokenStream, end: string, name?: string): Statement[] {
  stream.expect("block-end");
  const body = parseBody(stream, [end]);
  stream.expect("block-begin");
  stream.expect("name", end);
  if (name !== undefined) stream.accept("name", name);
  stream.expect("block-end");
  return body;
}

function parseStatement(stream: TokenStream): Statement {
  const { text: name, line } = stream.expect("name");
  switch (name) {
    case "if":
      return parseIf(stream, line);
    case "for":
      return parseFor(stream, line);
    case "set":
      return parseSet(stream, line);
    case "macro":
      return parseMacro(stream, line);
    case "call":
      return parseCallBlock(stream, line);
    case "filter":
      return parseFilterBlock(stream, line);
    case "with":
      return parseWith(stream, line);
    case "generation":
      return { kind: "generation", line, body: parseBlock(stream, "endgeneration") };
    case "break":
    case "continue":
      stream.expect("block-end");
      return { kind: name, line };
    default:
      throw templateError(`The template does not parse: unknown tag ${JSON.stringify(name)}`, line);
  }
}

function parseIf(stream: TokenStream, line: number): Statement {
  const branches: { test: Expression; body: Statement[] }[] = [];
  for (;;) {
    const test = parseTuple(stream, { conditional: false });
    stream.expect("block-end");
    branches.push({ test, body: parseBody(stream, ["elif", "else", "endif"]) });
    stream.expect("block-begin");
    const { text: name } = stream.expect("name");
    if (name === "elif") continue;
    if (name === "else") return { kind: "if", line, branches, otherwise: parseBlock(stream, "endif") };
    stream.expect("block-end");
    return { kind: "if", line, branches, otherwise: [] };
  }
}

function parseFor(stream: TokenStream, line: number): Statement {
  const target = parseTarget(stream, false);
  stream.expect("name", "in");
  const iterable = parseTuple(stream, { conditional: false });
  const test = stream.accept("name", "if") ? parseExpression(stream) : undefined;
  const recursive = stream.accept("name", "recursive");
  stream.expect("block-end");
  const body = parseBody(stream, ["else", "endfor"]);
  stream.expect("block-begin");
  let otherwise: Statement[] = [];
  if (stream.expect("name").text === "else") otherwise = parseBlock(stream, "endfor");
  else stream.expect("block-end");
  return { kind: "for", line, target, iterable, test, recursive, body, otherwise };
}

function parseSet(stream: TokenStream, line: number): Statement {
  const target = parseTarget(stream, true);
  if (stream.accept("operator", "=")) {
    const value = parseTuple(stream);
    stream.expect("block-end");
    return { kind: "set", line, target, value };
  }
  const filters = stream.accept("operator", "|") ? parseFilterChain(stream) : [];
  const body = parseBlock(stream, "endset");
  return { kind: "set-block", line, target, filters, body };
}

function parseTarget(stream: TokenStream, allowNamespace: boolean): AssignmentTarget {
  const first = parseSingleTarget(stream, allowNamespace);
  if (!stream.is("operator", ",")) return first;
  const items = [first];
  while (stream.accept("operator", ",")) {
    if (!stream.is("name") && !stream.is("operator", "(")) break;
    if (stream.is("name", "in")) break;
    items.push(parseSingleTarget(stream, allowNamespace));
  }
  return { kind: "tuple", items };
}

function parseSingleTarget(stream: TokenStream, allowNamespace: boolean): AssignmentTarget {
  if (stream.accept("operator", "(")) {
    const inner = stream.nested(() => parseTarget(stream, false));
    stream.expect("operator", ")");
    return inner;
  }
  const { text: name } = stream.expect("name");
  if (allowNamespace && stream.accept("operator", ".")) {
    return { kind: "namespace", object: name, attribute: stream.expect("name").text };
  }
  return { kind: "name", name };
}

function parseParameters(stream: TokenStream): Parameter[] {
  const parameters: Parameter[] = [];
  stream.expect("operator", "(");
  while (!stream.is("operator", ")")) {
    if (parameters.length > 0) stream.expect("operator", ",");
    if (stream.is("operator", ")")) break;
    const { text: name } = stream.expect("name");
    parameters.push({ name, fallback: stream.accept("operator", "=") ? parseExpression(stream) : undefined });
  }
  stream.expect("operator", ")");
  return parameters;
}

function parseMacro(stream: TokenStream, line: number): Statement {
  const { text: name } = stream.expect("name");
  const parameters = parseParameters(stream);
  const body = parseBlock(stream, "endmacro", name);
  return { kind: "macro", line, name, parameters, body };
}

function parseCallBlock(stream: TokenStream, line: number): Statement {
  const parameters = stream.is("operator", "(") ? parseParameters(stream) : [];
  const call = parseExpression(stream);
  if (call.kind !== "call") throw templateError("The template does not parse: {% call %} needs a call", line);
  const body = parseBlock(stream, "endcall");
  return { kind: "call-block", line, call, parameters, body };
}

/** `name(args) | name | ...` with no operand. */
function parseFilterChain(stream: TokenStream): FilterExpression[] {
  const filters: FilterExpression[] = [];
  do {
    const { text: name, line } = stream.expect("name");
    filters.push({ kind: "filter", line, operand: undefined, name, args: parseCallArguments(stream) });
  } while (stream.accept("operator", "|"));
  return filters;
}

function parseFilterBlock(stream: TokenStream, line: number): Statement {
  const filters = parseFilterChain(stream);
  const body = parseBlock(stream, "endfilter");
  return { kind: "filter-block", line, filters, body };
}

function parseWith(stream: TokenStream, line: number): Statement {
  const assignments: [AssignmentTarget, Expression][] = [];
  while (!stream.is("block-end")) {
    if (assignments.length > 0) stream.expect("operator", ",");
    const target = parseSingleTarget(stream, false);
    stream.expect("operator", "=");
    assignments.push([target, parseExpression(stream)]);
  }
  const body = parseBlock(stream, "endwith");
  return { kind: "with", line, assignments, body };
}
