import type { StepPlan } from "@octavo/kernels";

/** Tokens of a block of a tower's cache. */
export const towerBlockSize = 16;

export function joined(parts: readonly Float32Array[]): Float32Array {
  const whole = new Float32Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** A step of one sequence in the first blocks, without output rows. */
export function towerStep(numTokens: number): StepPlan {
  const numBlocks = Math.ceil(numTokens / towerBlockSize);
  const ascending = Int32Array.from({ length: numTokens }, (_, at) => at);
  return {
    numTokens,
    numSequences: 1,
    tokenIds: new Int32Array(numTokens),
    positions: ascending,
    slots: ascending,
    queryStarts: Int32Array.of(0, numTokens),
    contextLengths: Int32Array.of(numTokens),
    blockTables: ascending.slice(0, numBlocks),
    blockTableStarts: Int32Array.of(0, numBlocks),
    outputTokens: new Int32Array(0),
    outputs: [],
  };
}
