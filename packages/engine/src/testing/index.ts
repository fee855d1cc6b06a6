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
export { FakeBackend, type FakeBackendOptions } from "./fake-backend.js";
export { FakeTokenizer, type FakeTokenizerOptions } from "./fake-tokenizer.js";
export {
  blobName,
  MockHub,
  type MockFault,
  type MockFile,
  type MockRepository,
  type MockRequest,
} from "./mock-hub.js";
