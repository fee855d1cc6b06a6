import type { Statement } from "./jinja/syntax-tree.js";
import { nodesOf } from "./jinja/walk.js";

/** Names that a template reads or sets: what it is given under any other name has no effect. */
export function variableNames(template: readonly Statement[]): ReadonlySet<string> {
  const names = new Set<string>();
  for (const node of nodesOf(template)) if (node.kind === "name") names.add(node.name);
  return names;
}
