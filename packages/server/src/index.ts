export * from "./settings.js";
export { createServer, type CreateServerOptions, type OctavoServer } from "./create-server.js";
export type { ListenAddress } from "@octavo/protocol";
export { MeteringLog, type MeteringLogOptions } from "./account/metering-log.js";
export { serverVersion } from "./version.js";
