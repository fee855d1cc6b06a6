import type { StageDefinition } from "./exchange/stage.js";

/** The stages that can be configured, in the order in which they see a request. */
export const stageDefinitions: readonly StageDefinition[] = [];
