/** What a cluster builds on: the gateway with targets of its own, and the routing functions that a simulation runs too. */
export { type ConfigSource, problemOf, readGatewayConfig, withEnvironment } from "./config/load-config.js";
export { type GatewayTargetConfig, gatewaySchema } from "./config/schema.js";
export type { AdminRoute } from "./exchange/stage.js";
export { AdminListener } from "./http/admin-listener.js";
export { planAttempts, type PlanInput } from "./routing/plan.js";
export { PrefixIndex } from "./routing/prefix-index.js";
export { type StrategyName, strategyNames, type TargetState } from "./routing/strategies.js";
export { TargetPool } from "./routing/target-pool.js";
