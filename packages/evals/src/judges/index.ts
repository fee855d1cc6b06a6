export * from "./judge.js";
export {
  calibrate,
  type Calibrated,
  type CalibrationOptions,
  type CalibrationRefused,
  type CalibrationReport,
  type LabelledScore,
} from "./calibration.js";
export {
  calibrateEvaluator,
  carriedAnswer,
  carriedLabel,
  type CalibrateEvaluatorOptions,
  type EvaluatorCalibration,
  reportCalibration,
} from "./calibrate-evaluator.js";
export { cascadeReport, type CascadeReport } from "./cascade.js";
export { customLlmJudge, type CustomJudgeOptions } from "./custom-judge.js";
export {
  ClassifierModel,
  type DistilledClassifier,
  featureCount,
  packFloats,
} from "./distilled/classifier.js";
export { embedderOf, sampleEmbedding } from "./distilled/distilled-judge.js";
export { judgedEvaluators } from "./judged-evaluators.js";
export { OpenAiJudge, type OpenAiJudgeSettings, openAiJudge } from "./openai-judge.js";
export {
  comparePair,
  type ComparedPair,
  type Comparison,
  positionBias,
  type PositionBias,
} from "./pairwise.js";
export { rubrics } from "./rubrics.js";
export type { Rubric, RubricLabel } from "./rubrics/rubric.js";
export { selfJudgingWarning } from "./self-judging.js";
