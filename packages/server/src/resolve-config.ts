import { OctavoError } from "@octavo/protocol/errors";
import { checkOptionNames, type OptionsOf, resolveOptions } from "@octavo/protocol/options";
import { checkFormatNames } from "@octavo/text/parsers/format-names";
import { type ServerConfig, serverOptions } from "./config.js";
import { readTls } from "./http/tls.js";
import { checkDetectorConfig } from "./detectors/create-detectors.js";
import { checkTenantSettings } from "./tenants/tenant-settings.js";
import { checkTracingConfig } from "./tracing/tracing-config.js";

/** Defaults filled in and every value checked; throws `invalid_option` naming the option. */
export function resolveServerConfig(options: OptionsOf<typeof serverOptions> = {}): ServerConfig {
  checkOptionNames(options, Object.keys(serverOptions), "the server");
  const config = resolveOptions(serverOptions, options);
  if (config.maxBodyMemoryBytes < config.maxBodyBytes) {
    const message = `max_body_memory (${config.maxBodyMemoryBytes}) must hold one body of max_body_size (${config.maxBodyBytes})`;
    throw new OctavoError("invalid_option", message, { param: "max_body_memory" });
  }
  readTls(config);
  checkFormatNames(config);
  checkTracingConfig(config);
  checkDetectorConfig(config);
  checkTenantSettings(config.tenants, "tenants");
  return config;
}
