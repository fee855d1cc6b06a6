export { loadGatewayConfig } from "./config/load-config.js";
export type { GatewayConfig } from "./config/schema.js";
export { anonymousCaller, type Exchange } from "./exchange/exchange.js";
export type { Stage, StageDefinition, StageHooks } from "./exchange/stage.js";
export { GatewayListener } from "./http/gateway-listener.js";
export { Gateway, type GatewayOptions } from "./operation/gateway.js";
export { readGatewayFile, type RunningGateway, serveGateway } from "./operation/serve-gateway.js";
export { GatewayWorkers, onWorkerOrder, workerIndex } from "./operation/workers.js";
