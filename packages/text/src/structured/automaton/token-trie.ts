/**
 * A vocabulary's byte strings as a trie in depth-first order: the children of a node follow it, and `end` of a node is
 * the node after all that lie below it. Node 0 is the empty string. In shared memory, since threads share it.
 */
export interface TokenTrie {
  readonly numNodes: number;
  /** Byte that leads to the node. */
  readonly bytes: Uint8Array;
  readonly depths: Uint16Array;
  readonly ends: Int32Array;
  /** Tokens of node n: `tokens[tokenStarts[n]..tokenStarts[n + 1])`. */
  readonly tokenStarts: Int32Array;
  readonly tokens: Int32Array;
  readonly maxDepth: number;
}

export interface TokenText {
  readonly id: number;
  /** The token's bytes, one per UTF-16 unit. */
  readonly text: string;
}

/** In the order in which `buildTokenTrie` wants them. */
export function sortTokens(tokens: readonly TokenText[]): readonly TokenText[] {
  return tokens.toSorted((a, b) => (a.text < b.text ? -1 : a.text > b.text ? 1 : a.id - b.id));
}

/** Builds the trie of sorted tokens that have bytes. */
export function buildTokenTrie(sorted: readonly TokenText[]): TokenTrie {
  let numNodes = 1;
  let previous = "";
  for (const { text } of sorted) {
    numNodes += text.length - sharedPrefix(previous, text);
    previous = text;
  }
  const bytes = new Uint8Array(new SharedArrayBuffer(numNodes));
  const depths = new Uint16Array(new SharedArrayBuffer(numNodes * 2));
  const ends = new Int32Array(new SharedArrayBuffer(numNodes * 4));
  const tokenStarts = new Int32Array(new SharedArrayBuffer((numNodes + 1) * 4));
  const tokens = new Int32Array(new SharedArrayBuffer(sorted.length * 4));
  for (const [index, { id }] of sorted.entries()) tokens[index] = id;
  const open: number[] = [0];
  let node = 0;
  let maxDepth = 0;
  previous = "";
  for (const [index, { text }] of sorted.entries()) {
    const shared = sharedPrefix(previous, text);
    while (open.length > shared + 1) ends[open.pop()!] = node + 1;
    for (let depth = shared; depth < text.length; depth += 1) {
      node += 1;
      bytes[node] = text.charCodeAt(depth);
      depths[node] = depth + 1;
      tokenStarts[node] = index;
      open.push(node);
    }
    maxDepth = Math.max(maxDepth, text.length);
    previous = text;
  }
  for (const left of open) ends[left] = numNodes;
  tokenStarts[numNodes] = tokens.length;
  return { numNodes, bytes, depths, ends, tokenStarts, tokens, maxDepth };
}

function sharedPrefix(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  let shared = 0;
  while (shared < length && a.charCodeAt(shared) === b.charCodeAt(shared)) shared += 1;
  return shared;
}
