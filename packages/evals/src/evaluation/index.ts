export {
  evaluate,
  type Evaluation,
  type EvaluatedRow,
  type EvaluationOptions,
  type EvaluationSource,
} from "./evaluate.js";
export type {
  Counted,
  EvaluationSummary,
  EvaluatorStatus,
  EvaluatorResult,
  SliceSummary,
  TagSummary,
} from "./summary.js";
