/** Tokens of a prompt that stand for an image. */
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
  /** They stand as text does and see no token behind themselves. */
  readonly isCausal?: true;
  /** The id that other embeddings than the first take for them; absent: their own. */
  readonly otherId?: number;
  /** `[layers, numTokens, hidden size]`, added to the output of the decoder's first layers. */
  readonly added?: Float32Array;
}

/** Whether an image's tokens see each other, so that a step computes all that are left of them. */
export function seesAhead({ grid, isCausal }: Pick<PromptImage, "grid" | "isCausal">): boolean {
  return grid === undefined && isCausal !== true;
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
    (image) => seesAhead(image) && image.start < end && end < image.start + image.numTokens,
  );
  if (cut === undefined) return count;
  if (cut.start > from) return cut.start - from;
  const whole = cut.start + cut.numTokens - from;
  return whole <= most && count > 0 ? whole : 0;
}
