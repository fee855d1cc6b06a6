export * from "./settings.js";
export { createServer, type CreateServerOptions, type OctavoServer } from "./create-server.js";
export type { ListenAddress } from "./http/http-listener.js";
export { MeteringLog, type MeteringLogOptions } from "./account/metering-log.js";
export { serverVersion } from "./version.js";
