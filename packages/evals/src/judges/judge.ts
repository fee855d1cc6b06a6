/** A model that is asked for verdicts, over any OpenAI-compatible endpoint. */
export interface JudgeModel {
  /** Name of the model, as reports show it. */
  readonly name: string;
  /** Rejects with an OctavoError only: unreachable, refused, timed out, or an answer that cannot be read. */
  ask(question: JudgeQuestion, options: { readonly signal: AbortSignal }): Promise<JudgeAnswer>;
  /** A vector for each text; absent where the judge has no embeddings. Rejects as `ask` does. */
  readonly embed?: (
    texts: readonly string[],
    options: { readonly signal: AbortSignal },
  ) => Promise<readonly (readonly number[])[]>;
  /** Another model of the same endpoint, under the same limits; undefined where there is only one. */
  readonly withModel?: (model: string) => JudgeModel;
}

/** What a judge is asked. */
export interface JudgeQuestion {
  readonly system: string;
  readonly user: string;
  /** The answer is one of these labels, with a reason before it where `withReason`. */
  readonly labels: readonly string[];
  readonly withReason: boolean;
}

/** A judge's verdict on one question. */
export interface JudgeAnswer {
  readonly label: string;
  /** Probability of each label, from the logprobs at the deciding token; undefined if the server gives none. */
  readonly probabilities: Readonly<Record<string, number>> | undefined;
  readonly reason: string | undefined;
}
