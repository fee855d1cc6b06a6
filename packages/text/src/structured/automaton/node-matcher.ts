import type { Node } from "../node.js";
import { TermStore } from "./term-store.js";

const encoder = new TextEncoder();

/**
 * Tells which texts a node without rules matches. Throws `invalid_request`, at once or for a text, when finding out takes
 * too much work.
 */
export function nodeMatcher(node: Node): (text: string) => boolean {
  const store = new TermStore({ rules: [node], names: ["text"], root: 0 });
  const start = store.build(node);
  return (text) => {
    store.startWork();
    let term = start;
    for (const byte of encoder.encode(text)) term = store.step(term, store.classes.of[byte]!);
    return term.nullable;
  };
}
