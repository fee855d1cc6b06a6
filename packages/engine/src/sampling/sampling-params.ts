/** vLLM's SamplingParams in TypeScript names. Checked by `resolveSamplingParams` and trusted afterwards. */
export interface SamplingParams {
  /** Sequences to generate, 1..128. */
  readonly n: number;
  /** Generated tokens, at most; undefined means up to the end of the context. */
  readonly maxTokens: number | undefined;
  readonly minTokens: number;
  readonly temperature: number;
  readonly topP: number;
  /** 0 means off (-1 is accepted and becomes 0). */
  readonly topK: number;
  readonly minP: number;
  readonly presencePenalty: number;
  readonly frequencyPenalty: number;
  readonly repetitionPenalty: number;
  readonly logitBias: ReadonlyMap<number, number> | undefined;
  readonly allowedTokenIds: readonly number[] | undefined;
  readonly badWords: readonly string[];
  readonly stop: readonly string[];
  readonly stopTokenIds: readonly number[];
  readonly includeStopStrInOutput: boolean;
  readonly ignoreEos: boolean;
  /** Undefined chooses a random seed. */
  readonly seed: bigint | undefined;
  /** Number of alternatives; 0 returns only the chosen token's logprob, undefined none, -1 the whole vocabulary. */
  readonly logprobs: number | undefined;
  readonly promptLogprobs: number | undefined;
  readonly logprobTokenIds: readonly number[] | undefined;
  readonly skipSpecialTokens: boolean;
  /** Special tokens that stay in the text when others are skipped. */
  readonly keptSpecialTokens?: ReadonlySet<number>;
}
