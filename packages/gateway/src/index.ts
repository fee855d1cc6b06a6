export { anonymousCaller, type Exchange } from "./exchange/exchange.js";
export type { Stage, StageDefinition, StageHooks } from "./exchange/stage.js";
export { loadGatewayConfig } from "./config/load-config.js";
export type { GatewayConfig } from "./config/schema.js";
export { GatewayListener } from "./http/gateway-listener.js";
export { Gateway, type GatewayOptions } from "./operation/gateway.js";
