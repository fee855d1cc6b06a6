/**
 * Which blocks of prompts each target has seen, by their prefix hashes: what its prefix cache is expected to have. Bounded per
 * target; the block that was used longest ago goes first, as in the cache itself.
 */
export class PrefixIndex {
  readonly #blockSize: number;
  readonly #maxBlocks: number;
  /** A map keeps its keys in the order in which they were put in: the first is the oldest. */
  readonly #blocks = new Map<string, Map<string, true>>();

  constructor(blockSize: number, maxBlocks: number) {
    this.#blockSize = blockSize;
    this.#maxBlocks = maxBlocks;
  }

  /** Tokens of the prompt that the target should have cached: whole blocks, and never the last token, which must be computed. */
  predict(target: string, hashes: readonly string[], numTokens: number): number {
    const seen = this.#blocks.get(target);
    if (seen === undefined) return 0;
    const most = Math.floor((numTokens - 1) / this.#blockSize);
    let blocks = 0;
    while (blocks < most && blocks < hashes.length && seen.has(hashes[blocks] ?? "")) blocks += 1;
    return blocks * this.#blockSize;
  }

  /** The target has computed the prompt. */
  add(target: string, hashes: readonly string[]): void {
    let seen = this.#blocks.get(target);
    if (seen === undefined) this.#blocks.set(target, (seen = new Map()));
    // from the end, so that the beginning of a prompt, which others share, outlives its end
    for (let block = hashes.length - 1; block >= 0; block -= 1) {
      const hash = hashes[block] ?? "";
      seen.delete(hash);
      seen.set(hash, true);
    }
    for (const oldest of seen.keys()) {
      if (seen.size <= this.#maxBlocks) break;
      seen.delete(oldest);
    }
  }

  /** The target was restarted, or its cache is not to be counted on. */
  forget(target: string): void {
    this.#blocks.delete(target);
  }
}

/** The blocks of one prompt, and where to look them up. */
export interface PromptBlocks {
  readonly index: PrefixIndex;
  readonly hashes: readonly string[];
  readonly numTokens: number;
}
