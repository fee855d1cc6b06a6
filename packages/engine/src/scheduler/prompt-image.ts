/** Tokens of a prompt that stand for an image. Without a grid they see each other, so that a step computes all that are left of them. */
export interface PromptImage {
  /** Position of the first. */
  readonly start: number;
  readonly numTokens: number;
  /** Words of a digest of what the rows were made from: cached prefixes of images with other digests are others. */
  readonly digest: Int32Array;
  /** `[numTokens, hidden size]`, in the place of embedded ids. */
  readonly rows: Float32Array;
  /** How many of them in each direction, where they stand along rows and columns and see no token behind themselves. */
  readonly grid?: TokenGrid;
  /** `[layers, numTokens, hidden size]`, added to the output of the decoder's first layers. */
  readonly added?: Float32Array;
}

export interface TokenGrid {
  readonly rows: number;
  readonly columns: number;
}

/**
 * How many of the next `count` tokens from `from` on a step takes, so that it ends within no image: up to one, or with all of one that
 * comes next if that is at most `most`.
 */
export function withoutCutImage(
  images: readonly PromptImage[] | undefined,
  from: number,
  count: number,
  most: number,
): number {
  const end = from + count;
  const cut = images?.find(
    ({ start, numTokens, grid }) => grid === undefined && start < end && end < start + numTokens,
  );
  if (cut === undefined) return count;
  if (cut.start > from) return cut.start - from;
  const whole = cut.start + cut.numTokens - from;
  return whole <= most && count > 0 ? whole : 0;
}
