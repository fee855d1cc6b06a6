import { choice, empty, type Node, sequence } from "./node.js";

/** Fewer texts than this stay a plain choice. */
const enoughTexts = 16;
/** Most levels of branching; below them texts stay a plain choice. */
const maxLevels = 64;

/**
 * Any of the nodes. Texts among them become a tree of their common beginnings: following one then costs what one text
 * costs, however many there are.
 */
export function anyOf(nodes: readonly Node[]): Node {
  const texts = nodes.flatMap((node) => (node.op === "text" ? [node.bytes] : []));
  if (texts.length < enoughTexts) return choice(...nodes);
  const sorted = texts.toSorted((a, b) => Buffer.compare(a, b));
  const distinct = sorted.filter(
    (bytes, index) => index === 0 || Buffer.compare(bytes, sorted[index - 1]!) !== 0,
  );
  return choice(treeOf(distinct, 0, 0), ...nodes.filter(({ op }) => op !== "text"));
}

/** The rests of sorted texts that share their first `depth` bytes. */
function treeOf(texts: readonly Uint8Array[], depth: number, level: number): Node {
  const first = texts[0]!;
  const last = texts.at(-1)!;
  if (texts.length === 1) return rest(first, depth, first.length);
  if (level === maxLevels) return choice(...texts.map((bytes) => rest(bytes, depth, bytes.length)));
  let end = depth;
  while (end < first.length && first[end] === last[end]) end += 1;
  const branches: Node[] = first.length === end ? [empty] : [];
  for (let from = branches.length; from < texts.length;) {
    let to = from + 1;
    while (to < texts.length && texts[to]![end] === texts[from]![end]) to += 1;
    branches.push(treeOf(texts.slice(from, to), end, level + 1));
    from = to;
  }
  return sequence(rest(first, depth, end), choice(...branches));
}

function rest(bytes: Uint8Array, from: number, to: number): Node {
  return from === to ? empty : { op: "text", bytes: bytes.slice(from, to) };
}
