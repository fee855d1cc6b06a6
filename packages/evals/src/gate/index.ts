export {
  type GateAssertion,
  type ConfiguredCheck,
  type GateConfig,
  type GateConfigFile,
  type GateReading,
  type GateVocabulary,
  parseGateConfig,
  type ScoredTargetConfig,
  type TargetConfig,
} from "./config.js";
export { exitCodeOfChecks, exitCodeOfError, exitCodes, outcomeOf } from "./exit-codes.js";
export { dimensionOf, type HealthExpectation, parseExpectation, requestMetrics } from "./expectation.js";
export * from "./gate-result.js";
export { type GateEvidence, judgeGate, unjudged } from "./judge-gate.js";
export { Measurements, type Prices } from "./measurements.js";
export { concerns } from "./triggers.js";
