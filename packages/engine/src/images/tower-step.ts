import type { StepPlan } from "@octavo/kernels";
import type { Qwen3VisionPart } from "@octavo/artifacts/checkpoint/checkpoint";
import type { PromptImage } from "../scheduler/prompt-image.js";
import { longestRatio } from "./patches.js";

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

/** What an image of its own shape becomes. */
export type SeenPatches = Required<Pick<PromptImage, "rows" | "added" | "grid">>;

/** Of any image: one that is long and thin may have more than its number of pixels says, as its shorter side has a token at least. */
export function mostPatches(
  { patchSize }: { readonly patchSize: number },
  { minPixels, maxPixels, multiple }: Qwen3VisionPart["processing"],
): number {
  const [least, most] = [minPixels / multiple ** 2, maxPixels / multiple ** 2];
  const longest = Math.sqrt(longestRatio * least);
  const tokens = Math.max(most, Math.sqrt(longestRatio * most), least + longest + least / longest + 1);
  return Math.ceil(tokens) * (multiple / patchSize) ** 2;
}

/** `[patches, 3]`: a patch's row and column stand second and third. */
export function patchAxes(positions: Int32Array, columns: number): Int32Array {
  return Int32Array.from({ length: 3 * positions.length }, (_, at) => {
    const position = positions[Math.floor(at / 3)] ?? 0;
    return [0, Math.floor(position / columns), position % columns][at % 3] ?? 0;
  });
}

/** Rows that see those of their own sequence, all of which the step has; each sequence begins with a block of the cache. */
export function towerStep(lengths: readonly number[]): StepPlan {
  const queryStarts = [0];
  const blockTableStarts = [0];
  const positions: number[] = [];
  const slots: number[] = [];
  for (const length of lengths) {
    const firstBlock = blockTableStarts.at(-1) ?? 0;
    for (let at = 0; at < length; at++) {
      positions.push(at);
      slots.push(firstBlock * towerBlockSize + at);
    }
    queryStarts.push(positions.length);
    blockTableStarts.push(firstBlock + Math.ceil(length / towerBlockSize));
  }
  return {
    numTokens: positions.length,
    numSequences: lengths.length,
    tokenIds: new Int32Array(positions.length),
    positions: Int32Array.from(positions),
    slots: Int32Array.from(slots),
    queryStarts: Int32Array.from(queryStarts),
    contextLengths: Int32Array.from(lengths),
    blockTables: Int32Array.from({ length: blockTableStarts.at(-1) ?? 0 }, (_, block) => block),
    blockTableStarts: Int32Array.from(blockTableStarts),
    outputTokens: new Int32Array(0),
    outputs: [],
  };
}
