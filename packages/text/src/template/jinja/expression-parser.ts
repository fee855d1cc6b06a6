import type { BinaryOperator, CallArguments, ComparisonOperator, Expression } from "./syntax-tree.js";
import { templateError } from "./template-error.js";
import type { TokenStream } from "./token-stream.js";

const noArguments: CallArguments = { positional: [], named: [], spread: undefined, namedSpread: undefined };

/** One expression, with `a if b else c`. */
export function parseExpression(stream: TokenStream): Expression {
  return stream.nested(() => parseConditional(stream));
}

/** Expressions separated by commas make a tuple; without `conditional`, `if` is left for the statement around. */
export function parseTuple(
  stream: TokenStream,
  { conditional = true }: { readonly conditional?: boolean } = {},
): Expression {
  const parse = (): Expression =>
    conditional ? parseExpression(stream) : stream.nested(() => parseOr(stream));
  const first = parse();
  if (!stream.is("operator", ",")) return first;
  const items = [first];
  while (stream.accept("operator", ",")) {
    if (startsNoExpression(stream)) break;
    items.push(parse());
  }
  return { kind: "tuple", line: first.line, items };
}

function startsNoExpression(stream: TokenStream): boolean {
  const { kind, text } = stream.current;
  return (
    kind === "block-end" ||
    kind === "output-end" ||
    kind === "end" ||
    (kind === "operator" && (text === ")" || text === "]" || text === "=")) ||
    (kind === "name" && text === "in")
  );
}

function parseConditional(stream: TokenStream): Expression {
  let result = parseOr(stream);
  while (stream.accept("name", "if")) {
    const test = parseOr(stream);
    const otherwise = stream.accept("name", "else") ? parseExpression(stream) : undefined;
    result = { kind: "conditional", line: result.line, test, whenTrue: result, otherwise };
  }
  return result;
}

function parseOr(stream: TokenStream): Expression {
  let left = parseAnd(stream);
  while (stream.accept("name", "or"))
    left = { kind: "logical", line: left.line, operator: "or", left, right: parseAnd(stream) };
  return left;
}

function parseAnd(stream: TokenStream): Expression {
  let left = parseNot(stream);
  while (stream.accept("name", "and"))
    left = { kind: "logical", line: left.line, operator: "and", left, right: parseNot(stream) };
  return left;
}

function parseNot(stream: TokenStream): Expression {
  const { line } = stream.current;
  if (!stream.accept("name", "not")) return parseComparison(stream);
  return { kind: "unary", line, operator: "not", operand: stream.nested(() => parseNot(stream)) };
}

const comparisonOperators: readonly ComparisonOperator[] = ["==", "!=", "<=", ">=", "<", ">"];

function parseComparison(stream: TokenStream): Expression {
  const first = parseSum(stream);
  const rest: [ComparisonOperator, Expression][] = [];
  for (;;) {
    const operator = acceptComparison(stream);
    if (operator === undefined) break;
    rest.push([operator, parseSum(stream)]);
  }
  return rest.length === 0 ? first : { kind: "comparison", line: first.line, first, rest };
}

function acceptComparison(stream: TokenStream): ComparisonOperator | undefined {
  if (stream.accept("name", "in")) return "in";
  if (stream.is("name", "not") && stream.following.kind === "name" && stream.following.text === "in") {
    stream.next();
    stream.next();
    return "not in";
  }
  return comparisonOperators.find((operator) => stream.accept("operator", operator));
}

function parseSum(stream: TokenStream): Expression {
  return parseLeftToRight(stream, ["+", "-"], parseConcatenation);
}

function parseConcatenation(stream: TokenStream): Expression {
  const first = parseProduct(stream);
  if (!stream.is("operator", "~")) return first;
  const items = [first];
  while (stream.accept("operator", "~")) items.push(parseProduct(stream));
  return { kind: "concatenation", line: first.line, items };
}

function parseProduct(stream: TokenStream): Expression {
  return parseLeftToRight(stream, ["*", "//", "/", "%"], parsePower);
}

function parsePower(stream: TokenStream): Expression {
  return parseLeftToRight(stream, ["**"], (inner) => parseUnary(inner, true));
}

function parseLeftToRight(
  stream: TokenStream,
  operators: readonly BinaryOperator[],
  parse: (stream: TokenStream) => Expression,
): Expression {
  let left = parse(stream);
  for (;;) {
    const operator = operators.find((candidate) => stream.accept("operator", candidate));
    if (operator === undefined) return left;
    left = { kind: "binary", line: left.line, operator, left, right: parse(stream) };
  }
}

function parseUnary(stream: TokenStream, withFilters: boolean): Expression {
  const { line } = stream.current;
  const operator = (["-", "+"] as const).find((candidate) => stream.accept("operator", candidate));
  const base: Expression =
    operator === undefined
      ? parsePrimary(stream)
      : { kind: "unary", line, operator, operand: stream.nested(() => parseUnary(stream, false)) };
  const node = parsePostfix(stream, base);
  return withFilters ? parseFiltersAndTests(stream, node) : node;
}

const constants: Readonly<Record<string, boolean | null>> = {
  true: true,
  True: true,
  false: false,
  False: false,
  none: null,
  None: null,
};

function parsePrimary(stream: TokenStream): Expression {
  const { kind, text, line } = stream.current;
  if (kind === "string") {
    let value = "";
    while (stream.is("string")) value += stream.next().text;
    return { kind: "constant", line, value };
  }
  if (stream.accept("name")) {
    if (Object.hasOwn(constants, text)) return { kind: "constant", line, value: constants[text]! };
    return { kind: "name", line, name: text };
  }
  if (stream.accept("integer")) return { kind: "constant", line, value: Number(text) };
  if (stream.accept("float")) return { kind: "float", line, value: Number(text) };
  if (stream.accept("operator", "(")) return parseParenthesized(stream, line);
  if (stream.accept("operator", "[")) return { kind: "list", line, items: parseItems(stream, "]") };
  if (stream.accept("operator", "{")) return parseDict(stream, line);
  throw stream.unexpected("an expression");
}

function parseParenthesized(stream: TokenStream, line: number): Expression {
  if (stream.accept("operator", ")")) return { kind: "tuple", line, items: [] };
  const inner = parseTuple(stream);
  stream.expect("operator", ")");
  return inner;
}

function parseItems(stream: TokenStream, close: string): Expression[] {
  const items: Expression[] = [];
  while (!stream.is("operator", close)) {
    if (items.length > 0) stream.expect("operator", ",");
    if (stream.is("operator", close)) break;
    items.push(parseExpression(stream));
  }
  stream.expect("operator", close);
  return items;
}

function parseDict(stream: TokenStream, line: number): Expression {
  const entries: [Expression, Expression][] = [];
  while (!stream.is("operator", "}")) {
    if (entries.length > 0) stream.expect("operator", ",");
    if (stream.is("operator", "}")) break;
    const key = parseExpression(stream);
    stream.expect("operator", ":");
    entries.push([key, parseExpression(stream)]);
  }
  stream.expect("operator", "}");
  return { kind: "dict", line, entries };
}

function parsePostfix(stream: TokenStream, base: Expression): Expression {
  let node = base;
  for (;;) {
    const { line } = stream.current;
    if (stream.accept("operator", ".")) node = parseMember(stream, node, line);
    else if (stream.accept("operator", "[")) node = parseSubscript(stream, node, line);
    else if (stream.is("operator", "("))
      node = { kind: "call", line, callee: node, args: parseCallArguments(stream) };
    else return node;
  }
}

function parseMember(stream: TokenStream, object: Expression, line: number): Expression {
  const token = stream.next();
  if (token.kind === "name") return { kind: "attribute", line, object, name: token.text };
  if (token.kind === "integer")
    return { kind: "item", line, object, key: { kind: "constant", line, value: Number(token.text) } };
  throw templateError("The template does not parse: expected a name or number after the dot", line);
}

function parseSubscript(stream: TokenStream, object: Expression, line: number): Expression {
  const parts: (Expression | undefined)[] = [];
  let colons = 0;
  let current: Expression | undefined;
  while (!stream.is("operator", "]")) {
    if (stream.accept("operator", ":")) {
      colons++;
      parts.push(current);
      current = undefined;
    } else if (current === undefined) current = parseTuple(stream);
    else throw stream.unexpected("]");
  }
  stream.expect("operator", "]");
  if (colons === 0) {
    if (current === undefined) throw templateError("The template does not parse: empty subscript", line);
    return { kind: "item", line, object, key: current };
  }
  if (colons > 2) throw templateError("The template does not parse: a slice has at most three parts", line);
  parts.push(current);
  return { kind: "slice", line, object, start: parts[0], stop: parts[1], step: parts[2] };
}

/** Arguments in parentheses, or none when there are no parentheses. */
export function parseCallArguments(stream: TokenStream): CallArguments {
  if (!stream.accept("operator", "(")) return noArguments;
  const positional: Expression[] = [];
  const named: [string, Expression][] = [];
  let spread: Expression | undefined;
  let namedSpread: Expression | undefined;
  for (let count = 0; !stream.is("operator", ")"); count++) {
    if (count > 0) stream.expect("operator", ",");
    if (stream.is("operator", ")")) break;
    const { line } = stream.current;
    if (stream.accept("operator", "**")) namedSpread = parseExpression(stream);
    else if (stream.accept("operator", "*")) spread = parseExpression(stream);
    else if (stream.is("name") && stream.following.kind === "operator" && stream.following.text === "=") {
      const { text } = stream.next();
      stream.next();
      named.push([text, parseExpression(stream)]);
    } else {
      if (named.length > 0 || spread !== undefined || namedSpread !== undefined) {
        throw templateError("The template does not parse: a positional argument follows named ones", line);
      }
      positional.push(parseExpression(stream));
    }
  }
  stream.expect("operator", ")");
  return { positional, named, spread, namedSpread };
}

function parseFiltersAndTests(stream: TokenStream, base: Expression): Expression {
  let node = base;
  for (;;) {
    const { line } = stream.current;
    if (stream.accept("operator", "|")) {
      const { text: name } = stream.expect("name");
      node = { kind: "filter", line, operand: node, name, args: parseCallArguments(stream) };
    } else if (stream.accept("name", "is")) node = parseTest(stream, node, line);
    else if (stream.is("operator", "("))
      node = { kind: "call", line, callee: node, args: parseCallArguments(stream) };
    else return node;
  }
}

function parseTest(stream: TokenStream, operand: Expression, line: number): Expression {
  const negated = stream.accept("name", "not");
  const { text: name } = stream.expect("name");
  let args = noArguments;
  if (stream.is("operator", "(")) args = parseCallArguments(stream);
  else if (startsTestArgument(stream)) {
    if (stream.is("name", "is")) throw stream.unexpected("no second test");
    args = { ...noArguments, positional: [parsePostfix(stream, parsePrimary(stream))] };
  }
  const test: Expression = { kind: "test", line, operand, name, args };
  return negated ? { kind: "unary", line, operator: "not", operand: test } : test;
}

function startsTestArgument(stream: TokenStream): boolean {
  const { kind, text } = stream.current;
  if (kind === "name") return !["else", "or", "and", "if", "recursive", "in", "not"].includes(text);
  return (
    kind === "string" ||
    kind === "integer" ||
    kind === "float" ||
    (kind === "operator" && (text === "[" || text === "{"))
  );
}
