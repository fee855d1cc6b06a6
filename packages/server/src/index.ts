export { defaultServerConfig, resolveServerConfig, type ServerConfig } from "./config.js";
export { createServer, type CreateServerOptions, type OctavoServer } from "./create-server.js";
export type { ListenAddress } from "./http/http-listener.js";
export { serverVersion } from "./version.js";
