import type { Attributes, ServerAddress } from "@octavo/tracing";
import type { ServerConfig } from "../config.js";
import { serverVersion } from "../version.js";

/** What describes this process to collectors. */
export function resourceOf({ replicaId }: ServerConfig): Attributes {
  return {
    "service.name": process.env["OTEL_SERVICE_NAME"] ?? "octavo",
    "service.version": serverVersion,
    ...(replicaId === "" ? {} : { "service.instance.id": replicaId }),
    "process.pid": process.pid,
  };
}

/** Where it listens; a port that the system chooses is not known before. */
export function serverAddressOf({ host, port }: ServerConfig): ServerAddress {
  return { host, port: port === 0 ? undefined : port };
}
