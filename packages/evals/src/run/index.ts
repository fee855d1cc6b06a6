export { CaseJournal } from "./case-journal.js";
export * from "./case-row.js";
export { evaluationVocabulary, planEvaluation, type PlanSurroundings } from "./plan-evaluation.js";
export { type CaseProgress, type CaseRun, runCases } from "./run-cases.js";
export {
  type EvaluationPlan,
  type EvaluationProgress,
  type EvaluationRunOptions,
  type PlannedTarget,
  runEvaluation,
} from "./run-evaluation.js";
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
