import { budgetsStage } from "./budgets/budgets-stage.js";
import { cacheStage } from "./cache/cache-stage.js";
import { callersStage } from "./callers/callers-stage.js";
import { cascadeStage } from "./cascade/cascade-stage.js";
import type { StageDefinition } from "./exchange/stage.js";
import { guardrailsStage } from "./guardrails/guardrails-stage.js";
import { limitsStage } from "./limits/limits-stage.js";
import { rolloutsStage } from "./rollouts/rollouts-stage.js";

/** The stages that can be configured, in the order in which they see a request. */
export const stageDefinitions: readonly StageDefinition[] = [
  callersStage,
  limitsStage,
  budgetsStage,
  guardrailsStage,
  cacheStage,
  rolloutsStage,
  cascadeStage,
] as readonly StageDefinition[];
