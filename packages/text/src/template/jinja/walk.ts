import type { AssignmentTarget, Expression, Statement } from "./syntax-tree.js";

export type SyntaxNode = Statement | Expression | AssignmentTarget;

/** Every node of a syntax tree or of a piece of one, each before what it holds. */
export function* nodesOf(tree: unknown): Generator<SyntaxNode> {
  const pending: unknown[] = [tree];
  while (pending.length > 0) {
    const node = pending.pop();
    if (typeof node !== "object" || node === null) continue;
    if ("kind" in node) yield node as SyntaxNode;
    for (const part of Object.values(node)) pending.push(part);
  }
}
