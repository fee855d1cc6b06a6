import { Random } from "@octavo/statistics";
import type { Dataset, LoadCase } from "./dataset.js";
import { text } from "./words.js";

export interface SyntheticOptions {
  readonly seed: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Lengths are uniform in [n (1 - r), n (1 + r)]; 0 for fixed lengths. */
  readonly rangeRatio: number;
  readonly tokensPerWord: number;
  readonly ignoreEos: boolean;
}

function around(random: Random, length: number, ratio: number): number {
  return Math.max(1, random.integer(Math.floor(length * (1 - ratio)), Math.ceil(length * (1 + ratio))));
}

/** Prompts of random words that share nothing, so that no prefix cache can help. */
export function randomDataset(options: SyntheticOptions): Dataset {
  return {
    name: "random",
    cases(count) {
      const random = new Random(options.seed);
      return Array.from({ length: count }, (): LoadCase => {
        const inputTokens = around(random, options.inputTokens, options.rangeRatio);
        return {
          prompt: text(random, inputTokens, options.tokensPerWord),
          maxTokens: around(random, options.outputTokens, options.rangeRatio),
          ignoreEos: options.ignoreEos,
        };
      });
    },
  };
}

export interface SharedPrefixOptions extends SyntheticOptions {
  readonly prefixTokens: number;
  /** Number of distinct prefixes, used in turn at random. */
  readonly numPrefixes: number;
}

/** Prompts that begin with one of a few common prefixes (system prompts), then go their own way. */
export function sharedPrefixDataset(options: SharedPrefixOptions): Dataset {
  return {
    name: "shared-prefix",
    cases(count) {
      const random = new Random(options.seed);
      const prefixes = Array.from({ length: options.numPrefixes }, () =>
        text(random, options.prefixTokens, options.tokensPerWord),
      );
      return Array.from({ length: count }, (): LoadCase => {
        const inputTokens = around(random, options.inputTokens, options.rangeRatio);
        return {
          prompt: `${random.pick(prefixes)} ${text(random, inputTokens, options.tokensPerWord)}`,
          maxTokens: around(random, options.outputTokens, options.rangeRatio),
          ignoreEos: options.ignoreEos,
        };
      });
    },
  };
}
