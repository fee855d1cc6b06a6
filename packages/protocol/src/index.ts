export { errorCodes, OctavoError, systemProblem, type ErrorCode, type OctavoErrorOptions } from "./errors.js";
export {
  errorCodeHeader,
  queueDepthHeader,
  replicaHeader,
  replicaKeyHeader,
  toErrorBody,
  warningsHeader,
  type ErrorBody,
} from "./error-body.js";
export { BodyMemory, type BodyShare } from "./body-memory.js";
export { drainThenEnd } from "./drain-request.js";
export {
  connectionError,
  listenAt,
  readBody,
  refuseConnection,
  type BodyReading,
  type ListenAddress,
  type ListenPlace,
} from "./http-intake.js";
export { describeValue, isRecord, parseWith } from "./validation.js";
export {
  asArray,
  asNumber,
  asObject,
  asObjects,
  asRecord,
  asString,
  definedFields,
  parseJson,
  type JsonFields,
} from "./json-values.js";
export { fieldsWithEffect, unknownFields } from "./field-effects.js";
export { wireSchema } from "./wire-schema.js";
export type {
  ExplanationInfo,
  NeighboursInfo,
  OctavoFields,
  OctavoNotes,
  RecordedRequestInfo,
  ServingRecordInfo,
  Spread,
} from "./serving-record.js";
export { warmPrefixesRequest, type CachedPrefixInfo, type WarmPrefixesRequest } from "./prefix-cache.js";
export { maxTokenId, requestLimits } from "./fields.js";
export type { PromptInput } from "./prompt-input.js";
export {
  chatRoles,
  type ChatCustomTool,
  type ChatMessage,
  type ChatRole,
  type ChatTool,
  toolNameOf,
} from "./chat-messages.js";
export {
  chatCompletionRequest,
  type ChatAnswerMessage,
  type ChatChoice,
  type ChatChunkChoice,
  type ChatCompletion,
  type ChatCompletionChunk,
  type ChatCompletionRequest,
  type ChatDelta,
  type ChatFinishReason,
  type ChatCustomToolCall,
  type ChatToolCall,
  type ChatToolCallDelta,
  type SamplingFields,
} from "./chat.js";
export {
  faultInjectionRequest,
  type FaultInfo,
  type FaultInjectionRequest,
  type FaultList,
} from "./fault-injection.js";
export { chatBatchRequest, type ChatBatchRequest } from "./chat-batch.js";
export {
  countTokensRequest,
  messagesRequest,
  toMessagesErrorBody,
  type CountTokensRequest,
  type MessageAnswer,
  type MessageBlock,
  type MessagesRequest,
  type MessageStopReason,
  type MessageUsage,
} from "./messages.js";
export {
  completionRequest,
  defaultCompletionTokens,
  type Completion,
  type CompletionChoice,
  type CompletionFinishReason,
  type CompletionRequest,
} from "./completions.js";
export { type ClassificationList, type ClassifyRequest, classifyRequest } from "./classify.js";
export {
  embeddingRequest,
  poolingRequest,
  type EmbedDtype,
  type EmbeddingItem,
  type EmbeddingList,
  type EmbeddingsRequest,
  type Endianness,
  type PoolingList,
  type PoolingRequest,
} from "./embeddings.js";
export {
  responsesRequest,
  type ResponseItem,
  type ResponseItemStatus,
  type ResponseObject,
  type ResponsesInputItem,
  type ResponsesRequest,
  type ResponseStatus,
  type ResponseUsage,
} from "./responses.js";
export {
  rerankRequest,
  scoredPair,
  scoreRequest,
  type RerankList,
  type RerankRequest,
  type ScoreList,
  type ScoredField,
  type ScoreRequest,
  type ScoringUsage,
} from "./scoring.js";
export { loadLoraRequest, unloadLoraRequest, type LoadLoraRequest, type UnloadLoraRequest } from "./lora.js";
export { machineRecord, meteringRecord, type MachineRecord, type MeteringRecord } from "./metering-record.js";
export { priceTable, type ApiPrice, type PriceTable } from "./price-table.js";
export type { ModelCard, ModelList, ModelPermission } from "./models.js";
export {
  detokenizeRequest,
  tokenizeRequest,
  type DetokenizeRequest,
  type DetokenizeResponse,
  type TokenizeRequest,
  type TokenizeResponse,
} from "./tokenize.js";
export type {
  ChatLogprobs,
  ChatTokenLogprob,
  ChatTopLogprob,
  CompletionLogprobs,
  PromptLogprobs,
  PromptTokenLogprob,
} from "./logprobs.js";
export { structuralTag, type ConstraintFields, type StructuralTag } from "./structured.js";
export { usageInfo, type UsageInfo } from "./usage.js";
export { groupBy } from "./group-by.js";
export {
  createSseDecoder,
  encodeSseJson,
  sseDone,
  type SseDecoder,
  type SseDecoderOptions,
  type SseEvent,
} from "./sse.js";
