export type * from "./api.js";
export type * from "./adapters/adapter.js";
export type * from "./language-model.js";
export { type Account, defaultTenant } from "./scheduler/account.js";
export type {
  Cause,
  Culprit,
  Explanation,
  ExplanationPart,
  SlowGap,
  TenantPart,
} from "./evidence/explanation.js";
export { faultKinds } from "./faults/fault.js";
export type * from "./faults/fault.js";
export type { WeightCorruption } from "./faults/corrupt-weights.js";
export type { Neighbours, RecordedRequest } from "./evidence/neighbours.js";
export type { Spread } from "./evidence/spread.js";
export type { LoggedStep, StepShare } from "./evidence/step-log.js";
export type { ModelConfig, RopeConfig, RopeScaling } from "./models/model-config.js";
export type { SamplingParams } from "./sampling/sampling-params.js";
export type * from "./structured/grammar.js";
export type {
  ChatTemplate,
  ContentFormat,
  TemplateInput,
  TemplateMessage,
} from "./template/chat-template.js";
export type { Detokenizer, DecodeOptions, EncodeOptions, Tokenizer } from "./tokenizer/tokenizer.js";
export type {
  Checkpoint,
  GenerationDefaults,
  TensorInfo,
  TokenizerFileConfig,
  TokenizerSource,
} from "./weights/checkpoint.js";
export { openCheckpoint, type OpenCheckpointOptions } from "./weights/open-checkpoint.js";
export type { EngineHooks, EngineOptions, RunningEngine, SequenceView } from "./engine/engine-options.js";
export {
  planKvCache,
  type KvCachePlan,
  type KvCacheRequest,
  type KvShape,
} from "./kv-cache/plan-kv-cache.js";
export { type SchedulingPolicyName, schedulingPolicyNames } from "./scheduler/policies/scheduling-policy.js";
export { resolveModel, type ResolveModelOptions, type ResolvedModel } from "./hub/resolve-model.js";
export { describeModel, type DescribeModelOptions } from "./hub/describe-model.js";
export type { ModelDescription, TensorSize } from "./weights/describe-files.js";
export { createProgressBar, type ProgressStream } from "./hub/progress-bar.js";
export type { DownloadProgress } from "./hub/download-progress.js";
export {
  resolveSamplingParams,
  type SamplingContext,
  type SamplingInput,
} from "./sampling/resolve-sampling-params.js";
export { Generation } from "./llm/generation.js";
export type { GeneratedSequence, GenerationResult } from "./llm/generation-result.js";
export {
  LLM,
  type ChatOptions,
  type Conversation,
  type EmbedOptions,
  type GenerateOptions,
  type Prompt,
} from "./llm/llm.js";
export type { LoadOptions, LoadProgress } from "./llm/load-options.js";
export { quantizationNames } from "./quantization/quantization-names.js";
export type {
  DraftModelConfig,
  NgramConfig,
  SpeculativeConfig,
  SuffixConfig,
} from "./speculation/speculative-config.js";
export { supportedArchitectures } from "./models/registry.js";
export type { TemplateTokens } from "./template/compile-chat-template.js";
