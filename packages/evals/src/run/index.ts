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
