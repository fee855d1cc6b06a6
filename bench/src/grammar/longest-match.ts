import type { GrammarVocabulary } from "@octavo/text/structured/automaton/vocabulary";

/** Ids of the longest tokens that a text can be cut into from its beginning. */
export function longestMatch({ trie }: GrammarVocabulary, text: string): number[] {
  const bytes = Buffer.from(text);
  const ids: number[] = [];
  for (let at = 0; at < bytes.length;) {
    let best: number | undefined;
    let length = 1;
    let node = 0;
    for (let depth = 0; at + depth < bytes.length; depth += 1) {
      const next = childOf(trie, node, bytes[at + depth]!);
      if (next === undefined) break;
      node = next;
      if (trie.tokenStarts[node] === trie.tokenStarts[node + 1]) continue;
      best = trie.tokens[trie.tokenStarts[node]!];
      length = depth + 1;
    }
    if (best !== undefined) ids.push(best);
    at += length;
  }
  return ids;
}

function childOf(trie: GrammarVocabulary["trie"], node: number, byte: number): number | undefined {
  for (let child = node + 1; child < trie.ends[node]!; child = trie.ends[child]!)
    if (trie.bytes[child] === byte) return child;
  return undefined;
}
