import { Random } from "@octavo/statistics";
import type { LoadCase, LoadDataset } from "./dataset.js";
import { syntheticText } from "./words.js";

export interface SyntheticOptions {
  readonly seed: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Lengths are uniform in [n (1 - r), n (1 + r)]; 0 for fixed lengths. */
  readonly rangeRatio: number;
  readonly tokensPerWord: number;
  readonly ignoreEos: boolean;
  /** Length of a common prefix (a system prompt) before `inputTokens`. */
  readonly prefixTokens?: number;
  /** Number of distinct prefixes, each prompt begins with one at random; default 0. */
  readonly numPrefixes?: number;
}

/** Prompts of random words. Without prefixes they share nothing, so that no prefix cache can help. */
export function syntheticDataset(options: SyntheticOptions): LoadDataset {
  const { seed, rangeRatio, tokensPerWord, ignoreEos, prefixTokens = 0, numPrefixes = 0 } = options;
  return {
    cases(count) {
      const random = new Random(seed);
      const around = (length: number): number => {
        const [low, high] = [Math.floor(length * (1 - rangeRatio)), Math.ceil(length * (1 + rangeRatio))];
        return Math.max(1, random.integer(low, high));
      };
      const prefixes = Array.from(
        { length: numPrefixes },
        () => `${syntheticText(random, prefixTokens, tokensPerWord)} `,
      );
      return Array.from({ length: count }, (): LoadCase => {
        const inputTokens = around(options.inputTokens);
        const prefix = numPrefixes > 0 ? random.pick(prefixes) : "";
        return {
          prompt: prefix + syntheticText(random, inputTokens, tokensPerWord),
          maxTokens: around(options.outputTokens),
          ignoreEos,
        };
      });
    },
  };
}
