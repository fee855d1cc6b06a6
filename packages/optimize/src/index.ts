export * from "./artifact/candidate.js";
export { TunedFiles, type TunedPaths } from "./artifact/files.js";
export {
  type OptimizeConfig,
  type OptimizeFile,
  type TunedModelConfig,
  parseOptimizeConfig,
  type PlannedOptimization,
  planOptimization,
} from "./config.js";
export type { Optimizer } from "./optimizers/optimizer.js";
export { optimizers } from "./optimizers/table.js";
export type { BudgetLimits, Spending } from "./search/budget.js";
export { openSearchJournal, type SearchJournal } from "./search/journal-rows.js";
export {
  type HeldOutComparison,
  type OptimizeOptions,
  type OptimizeResult,
  optimizePrompts,
  type SearchProgress,
} from "./search/optimize.js";
export { type CaseParts, splitCases } from "./search/split.js";
export type { TeacherSettings, TeacherTally } from "./search/teacher.js";
export { type Distilled, distilJudge, type DistilOptions, type JudgedVector } from "./distil/distil.js";
export {
  distilEvaluator,
  type DistilEvaluatorOptions,
  type DistilledEvaluator,
} from "./distil/distil-evaluator.js";
export {
  type AuthoredEvaluator,
  authoredEvaluatorText,
  type MeasuredAgreement,
  parseAuthoredEvaluator,
  runnableEvaluator,
} from "./author/authored-evaluator.js";
export { chooseForLabels, type HumanLabel, labelLine, parseLabels } from "./author/choose-labels.js";
export {
  improveEvaluator,
  type Improvement,
  type LabelledSample,
  judgedValues,
} from "./author/improve-evaluator.js";
export { type JudgeDrift, judgeDrift } from "./author/judge-drift.js";
export { bareEvaluator, writeEvaluator } from "./author/write-evaluator.js";
export { Budget } from "./search/budget.js";
export { TeacherDesk } from "./search/teacher.js";
export {
  clusterFindings,
  type ClusterOptions,
  type EmbedTexts,
  type FindingCluster,
  type Recall,
} from "./errors/clustering/cluster-findings.js";
export { clusterQuality, type ClusterQuality } from "./errors/clustering/cluster-quality.js";
export {
  emptyFeed,
  entryNamed,
  type FeedEntry,
  type FeedState,
  feedStatuses,
  type FeedStatus,
  markEntry,
  parseFeedState,
  recordJudgement,
  recordProof,
  updateFeed,
} from "./errors/feed-state.js";
export type { CallFinding, FindingKind, Quote } from "./errors/finding.js";
export { type FindingLimits, findingsOfSpan } from "./errors/findings-of-span.js";
export { issueText, proofLines } from "./errors/issue-text.js";
export {
  type ConfigPatch,
  patched,
  patchedFiles,
  renderPatch,
  settingAt,
  type SettingValue,
} from "./errors/config-patch.js";
export { findingsOfAlert } from "./errors/findings-of-alert.js";
export { type LoggedCall, loggedCalls, noFault } from "./errors/gateway-log.js";
export { findingsOfGatewayLog } from "./errors/findings-of-gateway.js";
export { proposeDeploymentFix } from "./errors/propose-deployment-fix.js";
export { judgeCause, needsJudge } from "./errors/judge-cause.js";
export { type CauseJudgement, judgedCauses } from "./errors/judged-causes.js";
export { type FixEvidence, hasMeasuredCause, proposeFix, type ServeSettings } from "./errors/propose-fix.js";
export { proposeGatewayFix } from "./errors/propose-gateway-fix.js";
export { type FixStandard, judgeFix, type MeasuredChange, type ReplayPair } from "./replay/judge-fix.js";
export {
  type FixProof,
  type PreparedReplay,
  proveFix,
  type ProveFixOptions,
  type ReplaySide,
} from "./replay/fix-proof.js";
export { measuresOf, type ReplayMeasure } from "./replay/measures.js";
export {
  type GatewayRequest,
  type GatewayWorkload,
  recordedGateway,
  unfailedScore,
} from "./replay/recorded-gateway.js";
export { busyStatuses, numAlike, type RecordedTarget, type TargetAnswer } from "./replay/recorded-targets.js";
export {
  type RecordedCall,
  recordedWorkload,
  type RecordedWorkload,
  type ReplayedRequest,
  scheduleOf,
} from "./replay/recorded-workload.js";
export { replayOn, type ReplayRun, tokenScaleOf } from "./replay/replay-on-server.js";
export { type CandidateResult } from "./search/journal-rows.js";
export { CandidateScorer } from "./search/scorer.js";
