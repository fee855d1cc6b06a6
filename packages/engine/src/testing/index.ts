export {
  collect,
  createFakeEngine,
  eosToken,
  generationRequest,
  letterTokenizer,
  plainParams,
  type Collected,
  type CollectedSequence,
  type FixtureOptions,
} from "./engine-fixture.js";
export { dequantize, dequantizeGroups, isGrouped } from "./dequantize.js";
export { editSafetensors, type EditableTensor } from "./edit-safetensors.js";
export { FakeBackend, type FakeBackendOptions } from "./fake-backend.js";
export { FakeTokenizer, type FakeTokenizerOptions } from "./fake-tokenizer.js";
export { fromBfloat16, fromHalf, toBfloat16, toHalf } from "./float-bits.js";
export type { GgufFixture } from "./model-fixtures.js";
export {
  blobName,
  MockHub,
  type MockFault,
  type MockFile,
  type MockRepository,
  type MockRequest,
} from "./mock-hub.js";
export { ModelRunner } from "./model-runner.js";
export { quantize, type StoredType, type WrittenType } from "./quantize.js";
export { Random } from "./random.js";
export { plainServingRecord } from "./serving-record.js";
export { isolationCases } from "./simulation/isolation-cases.js";
export { isolationReports, type IsolationCase, type IsolationReport } from "./simulation/isolation-report.js";
export { requestsOf, together, type SimulatedRequest, type TenantLoad } from "./simulation/load.js";
export { type RecordedSteps } from "./simulation/step-costs.js";
export {
  tinyConfigJson,
  tinyGgufMetadata,
  tinyGgufTensors,
  tinyModel,
  tinyTensors,
  writeTinyFolder,
  writeTinyGguf,
  type TinyModel,
} from "./tiny-checkpoint.js";
export { byteLevelTokens, tinyTokenizerConfig, tinyTokenizerJson, tinyVocabSize } from "./tiny-tokenizer.js";
export {
  encodeGguf,
  encodeGgufHeader,
  writeGguf,
  type GgufHeaderToWrite,
  type GgufTensorInfo,
  type GgufToWrite,
  type GgufValue,
} from "./write-gguf.js";
export {
  encodeSafetensors,
  joinSafetensors,
  writeSafetensors,
  type TensorToWrite,
} from "./write-safetensors.js";
export type { EngineParts } from "./run-schedule.js";
export { scheduleProperties, type ModelUnderTest, type ScheduleSuiteOptions } from "./schedule-properties.js";
export { randomSchema } from "../structured/testing/random-schema.js";
export { schemaJudge } from "../structured/testing/real-world/judge.js";
export { realWorldSchema } from "../structured/testing/real-world/real-world-schema.js";
export { syntheticVocabulary } from "../structured/testing/synthetic-vocabulary.js";
export type { Vocabulary as GrammarVocabulary } from "../structured/automaton/vocabulary.js";
