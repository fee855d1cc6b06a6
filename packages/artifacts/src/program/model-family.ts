import type { ModelPlan } from "./model-plan.js";
import type { ProgramBuilder } from "./program-builder.js";

/** A model family: the architectures it serves and the program it records for them. Families enter in `registry.ts`. */
export interface ModelFamily {
  /** Values of `ModelConfig.architecture`, as in config.json's `architectures`. */
  readonly architectures: readonly string[];
  /** Throws `artifact_invalid` when a tensor is missing or has another shape than the configuration implies. */
  plan(builder: ProgramBuilder): ModelPlan;
}
