import type { Statement } from "./jinja/syntax-tree.js";

/** Names that a template reads or sets: what it is given under any other name has no effect. */
export function variableNames(template: readonly Statement[]): ReadonlySet<string> {
  const names = new Set<string>();
  const pending: unknown[] = [template];
  while (pending.length > 0) {
    const node = pending.pop();
    if (typeof node !== "object" || node === null) continue;
    if ("kind" in node && node.kind === "name" && "name" in node && typeof node.name === "string")
      names.add(node.name);
    for (const part of Object.values(node)) pending.push(part);
  }
  return names;
}
