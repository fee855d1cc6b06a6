/** What a server can be told, for those who must know before there is one: far fewer modules than the server has. */
export { defaultServerConfig, type ServerConfig, serverOptions } from "./config.js";
export { resolveServerConfig } from "./resolve-config.js";
export {
  parseTenantSettings,
  tenantSources,
  type TenantSettings,
  type TenantSource,
} from "./tenants/tenant-settings.js";
