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
export { ModelRunner } from "./model-runner.js";
export { plainServingRecord } from "./serving-record.js";
export { isolationCases } from "./simulation/isolation-cases.js";
export { isolationReports, type IsolationCase, type IsolationReport } from "./simulation/isolation-report.js";
export { requestsOf, together, type SimulatedRequest, type TenantLoad } from "./simulation/load.js";
export { type RecordedSteps } from "./simulation/step-costs.js";
export type { EngineParts } from "./run-schedule.js";
export { scheduleProperties, type ModelUnderTest, type ScheduleSuiteOptions } from "./schedule-properties.js";
