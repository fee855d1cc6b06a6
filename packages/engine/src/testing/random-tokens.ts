import assert from "node:assert/strict";
import type { Grammar } from "@octavo/text/structured/grammar";

type Matcher = ReturnType<Grammar["start"]>;

/** A random walk through a grammar: what a model that writes anything at all would write, while `goesOn`. */
export function randomTokens(
  grammar: Grammar,
  vocabSize: number,
  seed: number,
  goesOn: (matcher: Matcher, numTokens: number) => boolean,
): number[] {
  const matcher = grammar.start();
  const mask = new Uint32Array(grammar.maskWords);
  const tokens: number[] = [];
  let state = seed;
  while (goesOn(matcher, tokens.length)) {
    matcher.fillMask(mask);
    const allowed = Array.from({ length: vocabSize }, (_, id) => id).filter(
      (id) => ((mask[id >> 5] ?? 0) >>> (id & 31)) & 1,
    );
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    const token = allowed[Math.floor((state / 2 ** 32) * allowed.length)] ?? 0;
    assert.ok(matcher.accept(token));
    tokens.push(token);
  }
  return tokens;
}
