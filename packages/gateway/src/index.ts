export { anonymousCaller, type Exchange } from "./exchange/exchange.js";
export type { Stage, StageDefinition, StageHooks } from "./exchange/stage.js";
export { stageDefinitions } from "./stages.js";
