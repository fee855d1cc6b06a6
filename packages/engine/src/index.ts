export type * from "./api.js";
export type * from "./adapters/adapter.js";
export type * from "./language-model.js";
export { type Account, defaultTenant } from "./scheduler/account.js";
export type {
  Cause,
  Culprit,
  Explanation,
  ExplanationPart,
  RequestName,
  SlowGap,
  TenantPart,
} from "./evidence/explanation.js";
export { faultKinds } from "./faults/fault.js";
export type * from "./faults/fault.js";
export type { WeightCorruption } from "./faults/corrupt-weights.js";
export type { Neighbours, RecordedRequest } from "./evidence/neighbours.js";
export type { Spread } from "./evidence/spread.js";
export type { LoggedStep, StepShare } from "./evidence/step-log.js";
export type {
  ClassifierConfig,
  ModelConfig,
  Pooling,
  RopeConfig,
  RopeScaling,
} from "@octavo/artifacts/program/model-config";
export type { SamplingParams } from "./sampling/sampling-params.js";
export type * from "@octavo/text/structured/grammar";
export type {
  ChatTemplate,
  ContentFormat,
  TemplateInput,
  TemplateMessage,
  TemplatePart,
} from "@octavo/text/template/chat-template";
export type { TokenizerFileConfig, TokenizerSource } from "@octavo/text/tokenizer/source";
export type { Detokenizer, DecodeOptions, EncodeOptions, Tokenizer } from "@octavo/text/tokenizer/tokenizer";
export type { Checkpoint, GenerationDefaults, TensorInfo } from "@octavo/artifacts/checkpoint/checkpoint";
export { openCheckpoint, type OpenCheckpointOptions } from "@octavo/artifacts/checkpoint/open-checkpoint";
export type { EngineHooks, EngineOptions, PauseMode, RunningEngine, SequenceView } from "./engine-options.js";
export type { ModelSleep, SleepLevel, SleepOptions, WakeTag } from "./llm/model-sleep.js";
export {
  planKvCache,
  type KvCachePlan,
  type KvCacheRequest,
  type KvShape,
} from "./kv-cache/plan-kv-cache.js";
export { type SchedulingPolicyName, schedulingPolicyNames } from "./scheduler/policies/scheduling-policy.js";
export {
  resolveModel,
  type ResolveModelOptions,
  type ResolvedModel,
} from "@octavo/artifacts/hub/resolve-model";
export { describeModel, type DescribeModelOptions } from "@octavo/artifacts/hub/describe-model";
export type { ModelDescription, TensorSize } from "@octavo/artifacts/checkpoint/describe-files";
export { createProgressBar, type ProgressStream } from "@octavo/artifacts/hub/progress-bar";
export type { DownloadProgress } from "@octavo/artifacts/hub/download-progress";
export {
  resolveSamplingParams,
  type SamplingContext,
  type SamplingInput,
} from "./sampling/resolve-sampling-params.js";
export { Generation } from "./llm/generation.js";
export { tool, type Tool, type ToolCall, type ToolContext, type ToolInput } from "./chat/tool.js";
export type { CheckedSchema, ValueSchema } from "./chat/schema.js";
export type { GeneratedSequence, GenerationDelta, GenerationResult } from "./llm/generation-result.js";
export { LLM } from "./llm/llm.js";
export type {
  ChatOptions,
  Conversation,
  EmbedOptions,
  GenerateOptions,
  ObjectResult,
  Prompt,
} from "./llm/call-options.js";
export type { LoadOptions, LoadProgress } from "./llm/load-options.js";
export { quantizationNames } from "@octavo/artifacts/quantization/quantization-names";
export type {
  DraftModelConfig,
  Eagle3Config,
  MtpConfig,
  NgramConfig,
  SpeculativeConfig,
  SuffixConfig,
} from "./speculation/speculative-config.js";
export { supportedArchitectures } from "@octavo/artifacts/program/registry";
export type { TemplateTokens } from "@octavo/text/template/compile-chat-template";
