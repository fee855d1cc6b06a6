import type { ModelPlan } from "../program/model-plan.js";

/** What drafts from the hidden states of the model that it was trained with, planned beside that model. */
export interface DraftHead {
  readonly name: string;
  /** What the names of its own tensors begin with, where they are among the model's. */
  readonly ownPrefix: string | undefined;
  /** The model's plan with `send` ops for the hidden states that the head reads. */
  tap(plan: ModelPlan): ModelPlan;
  /** Receives of each token what a step of the model sends, side by side, and embeds the token behind it; samples the token behind that. */
  readonly reading: ModelPlan;
  /** The same of hidden states that the head itself sent, for tokens that the model has not computed. */
  readonly drafting: ModelPlan;
  /** The model's ids of the ids that it samples; undefined where they are the same. */
  readonly targetIds: Int32Array | undefined;
}
