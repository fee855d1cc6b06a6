import { specialMark } from "./automaton/vocabulary.js";
import { choice, type Node, sequence, text } from "./node.js";

const encoder = new TextEncoder();

/** A text; where it holds the text of a special token, either its characters or the token itself. */
export function literalNode(value: string, specialTokens: ReadonlySet<string>): Node {
  const parts: Node[] = [];
  let plain = "";
  for (let index = 0; index < value.length;) {
    const token = longestAt(value, index, specialTokens);
    if (token === undefined) {
      plain += value[index]!;
      index += 1;
      continue;
    }
    parts.push(text(plain), choice(text(token), markedToken(token)));
    plain = "";
    index += token.length;
  }
  return sequence(...parts, text(plain));
}

/** The token itself, as vocabularies for grammars write it. */
function markedToken(token: string): Node {
  return { op: "text", bytes: Uint8Array.of(specialMark, ...encoder.encode(token)) };
}

function longestAt(value: string, index: number, specialTokens: ReadonlySet<string>): string | undefined {
  let longest: string | undefined;
  for (const token of specialTokens) {
    if (token.length > (longest?.length ?? 0) && value.startsWith(token, index)) longest = token;
  }
  return longest;
}
