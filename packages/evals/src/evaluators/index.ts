export * from "./evaluator.js";
export {
  defineEvaluator,
  EvaluatorTable,
  noOptions,
  type EvaluatorEntry,
  type EvaluatorServices,
  type Measured,
  type ScorerOutcome,
  type Scorer,
} from "./registry.js";
export { corpusBleu } from "./overlap/bleu.js";
export { corpusChrf } from "./overlap/chrf.js";
export { missingInput } from "./inputs.js";
export { loadEvaluatorTable } from "./load-table.js";
export { evaluatorTable } from "./table.js";
export { evaluatorFileFormat, readEvaluatorFile, withEvaluatorFiles } from "./evaluator-file.js";
