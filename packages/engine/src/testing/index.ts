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
} from "./fakes/engine-fixture.js";
export { FakeBackend, type FakeBackendOptions } from "./fakes/fake-backend.js";
export { ModelRunner } from "./oracles/model-runner.js";
export { plainServingRecord } from "./fakes/serving-record.js";
export { isolationCases } from "./simulation/isolation-cases.js";
export { isolationReports, type IsolationCase, type IsolationReport } from "./simulation/isolation-report.js";
export { requestsOf, together, type SimulatedRequest, type TenantLoad } from "./simulation/load.js";
export { type RecordedSteps } from "./simulation/step-costs.js";
export type { ModelEngineOptions } from "./schedules/run-schedule.js";
export {
  scheduleProperties,
  type ModelUnderTest,
  type ScheduleSuiteOptions,
} from "./schedules/schedule-properties.js";
