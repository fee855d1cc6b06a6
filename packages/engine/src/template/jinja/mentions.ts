/** Whether a name occurs anywhere in a piece of the syntax tree. */
export function mentions(node: unknown, name: string): boolean {
  if (typeof node !== "object" || node === null) return false;
  if (Array.isArray(node)) return node.some((item) => mentions(item, name));
  if ("kind" in node && node.kind === "name" && "name" in node) return node.name === name;
  return Object.values(node).some((child) => mentions(child, name));
}
