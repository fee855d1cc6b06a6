import type { ContentFormat } from "./chat-template.js";
import { parseTemplate } from "./jinja/parser.js";
import type { Expression, Statement } from "./jinja/syntax-tree.js";
import { nodesOf, type SyntaxNode } from "./jinja/walk.js";

/**
 * Whether a template iterates over a message's content part by part, by the rules of vLLM's
 * `--chat-template-content-format auto`, and whether it still reads the first one as a text, which vLLM does not look for. Throws `template_error` for a template that does not parse.
 */
export function detectContentFormat(source: string): ContentFormat {
  return contentFormatOf(parseTemplate(source));
}

type Loop = Extract<Statement, { kind: "for" }>;
type Macro = Extract<Statement, { kind: "macro" }>;

/** As `detectContentFormat`, of a template that is parsed already. */
export function contentFormatOf(template: readonly Statement[]): ContentFormat {
  const nodes = [...nodesOf(template)];
  const lists = messageLists(nodes);
  const loops = nodes.filter((node): node is Loop => node.kind === "for");
  const messages = new Set<string>();
  for (const { iterable, target } of loops) {
    if (target.kind === "name" && lists.has(pathOf(unwrapped(iterable)))) messages.add(target.name);
  }
  const isContent = (expression: Expression): boolean => {
    const base = unwrapped(expression);
    if (base.kind === "attribute") return base.name === "content" && messages.has(pathOf(base.object));
    if (base.kind !== "item" || base.key.kind !== "constant") return false;
    return base.key.value === "content" && messages.has(pathOf(base.object));
  };

  // a macro's parameters mean what its calls hand it; elsewhere the name `content` means a message's
  const contentNames = new Map<Loop, ReadonlySet<string>>();
  for (const macro of nodes) {
    if (macro.kind !== "macro") continue;
    const names = contentParameters(macro, nodes, isContent);
    for (const node of nodesOf(macro.body)) if (node.kind === "for") contentNames.set(node, names);
  }
  const namesContent = (loop: Loop): boolean => {
    if (loop.iterable.kind !== "name") return false;
    return (contentNames.get(loop) ?? new Set(["content"])).has(loop.iterable.name);
  };
  if (!loops.some((loop) => isContent(loop.iterable) || namesContent(loop))) return "string";
  return readsFirstAsText(nodes, loops) ? "text_then_parts" : "parts";
}

/** Whether the first message's content is trimmed or joined to a text, and nothing prepares for it to be parts (Gemma 4). */
function readsFirstAsText(nodes: readonly SyntaxNode[], loops: readonly Loop[]): boolean {
  const isFirst = (expression: Expression | undefined): boolean => {
    if (expression?.kind !== "attribute" && expression?.kind !== "item") return false;
    const { object } = expression;
    const key = expression.kind === "attribute" ? expression.name : constantOf(expression.key);
    return (
      key === "content" &&
      object.kind === "item" &&
      pathOf(object.object) === "messages" &&
      constantOf(object.key) === 0
    );
  };
  const takesParts = (node: SyntaxNode): boolean =>
    (node.kind === "test" && isFirst(node.operand)) || (node.kind === "item" && isFirst(node.object));
  if (nodes.some(takesParts) || loops.some(({ iterable }) => isFirst(unwrapped(iterable)))) return false;
  return nodes.some(
    (node) =>
      (node.kind === "filter" && node.name === "trim" && isFirst(node.operand)) ||
      (node.kind === "binary" && node.operator === "+" && (isFirst(node.left) || isFirst(node.right))),
  );
}

function constantOf(expression: Expression): unknown {
  return expression.kind === "constant" ? expression.value : undefined;
}

/** `messages` and what is set from it, also as attributes of namespaces (`ns.rest`). */
function messageLists(nodes: readonly SyntaxNode[]): ReadonlySet<string> {
  const lists = new Set(["messages"]);
  const isList = (expression: Expression): boolean => lists.has(pathOf(unwrapped(expression)));
  for (let size = 0; size !== lists.size;) {
    size = lists.size;
    for (const node of nodes) {
      if (node.kind !== "set") continue;
      const { target, value } = node;
      if (target.kind === "namespace" && isList(value)) lists.add(`${target.object}.${target.attribute}`);
      if (target.kind !== "name") continue;
      if (isList(value)) lists.add(target.name);
      if (value.kind !== "call" || pathOf(value.callee) !== "namespace") continue;
      for (const [name, given] of value.args.named) if (isList(given)) lists.add(`${target.name}.${name}`);
    }
  }
  return lists;
}

function contentParameters(
  { name, parameters }: Macro,
  nodes: readonly SyntaxNode[],
  isContent: (expression: Expression) => boolean,
): ReadonlySet<string> {
  const names = new Set<string>();
  for (const node of nodes) {
    if (node.kind !== "call" || pathOf(node.callee) !== name) continue;
    for (const [index, parameter] of parameters.entries()) {
      const given = node.args.positional[index];
      if (given !== undefined && isContent(given)) names.add(parameter.name);
    }
    for (const [parameter, given] of node.args.named) if (isContent(given)) names.add(parameter);
  }
  return names;
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
