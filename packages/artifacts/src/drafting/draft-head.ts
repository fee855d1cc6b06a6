import type { ModelPlan } from "../program/model-plan.js";

/** What drafts from the hidden states of the model that it was trained with, planned beside that model. */
export interface DraftHead {
  readonly name: string;
  /** What the names of its own tensors begin with, where they are among the model's. */
  readonly ownPrefix: string | undefined;
  /** The model's plan with `send` ops for the hidden states that the head reads. */
  tap(plan: ModelPlan): ModelPlan;
  /** From what a step of the model sends of each token, side by side, to what `layer` receives; undefined where they are the same. */
  readonly fusion: ModelPlan | undefined;
  /**
   * Receives a hidden state of each token and embeds the token behind it; samples the token behind that. Sends hidden states of the
   * same width, which take the place of the model's for tokens that the model has not computed.
   */
  readonly layer: ModelPlan;
  /** The model's ids of the ids that `layer` samples; undefined where they are the same. */
  readonly targetIds: Int32Array | undefined;
}
