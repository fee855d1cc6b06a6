import type { PromptImage } from "../scheduler/prompt-image.js";

/**
 * Where a token of a sequence stands along time, row and column, as transformers' Qwen3VLModel has it: those of an image from where it
 * begins, by their place in it; the text behind from where the longer side of the image ends.
 * @param images ascending, of the sequence
 */
export function imageAxesOf(
  images: readonly Pick<PromptImage, "start" | "numTokens" | "grid">[],
  position: number,
): readonly [time: number, row: number, column: number] {
  let shift = 0;
  for (const { start, numTokens, grid } of images) {
    if (grid === undefined || position < start) continue;
    const within = position - start;
    if (within < numTokens) {
      const first = start + shift;
      return [first, first + Math.floor(within / grid.columns), first + (within % grid.columns)];
    }
    shift += Math.max(grid.rows, grid.columns) - numTokens;
  }
  return [position + shift, position + shift, position + shift];
}
