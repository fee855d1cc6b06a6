import type { Grammar } from "./grammar.js";

const numWalks = 2;
const numSteps = 24;

/** Follows a grammar for some steps, so that one that takes too much work is refused before a request runs on it. */
export function tryOut(grammar: Grammar): void {
  const mask = new Uint32Array(grammar.maskWords);
  for (let walk = 0; walk < numWalks; walk += 1) {
    const matcher = grammar.start();
    for (let step = 0; step < numSteps && !matcher.isFinished; step += 1) {
      matcher.fillMask(mask);
      // The first word with any token from a place that moves on, so that the walks take different ways.
      const first = Math.imul(step * numWalks + walk + 1, 0x9e3779b1) >>> 0;
      let word = first % mask.length;
      let looked = 0;
      while (mask[word] === 0 && looked < mask.length) {
        word = (word + 1) % mask.length;
        looked += 1;
      }
      const bits = mask[word]!;
      if (bits === 0 || !matcher.accept(word * 32 + 31 - Math.clz32(bits))) break;
    }
  }
}
