/** What a server can be told, for those who must know before there is one: far fewer modules than the server has. */
export { defaultServerConfig, type ServerConfig, serverOptions } from "./config.js";
export { resolveServerConfig } from "./resolve-config.js";
export { parseTenantSettings, readTenantsFile } from "./tenants/tenants-file.js";
export { tenantSources, type TenantSettings, type TenantSource } from "./tenants/tenant-settings.js";
