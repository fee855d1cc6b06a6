import type { Attributes, ServerAddress } from "@octavo/tracing";
import type { ServerConfig } from "../config.js";
import { serverVersion } from "../version.js";

/** Resource attributes of this process. */
export function resourceOf({ replicaId }: ServerConfig): Attributes {
  return {
    "service.name": process.env["OTEL_SERVICE_NAME"] ?? "octavo",
    "service.version": serverVersion,
    ...(replicaId === "" ? {} : { "service.instance.id": replicaId }),
    "process.pid": process.pid,
  };
}

/** Where the server listens; a port chosen by the system is not known yet. */
export function serverAddressOf({ host, port }: ServerConfig): ServerAddress {
  return { host, port: port === 0 ? undefined : port };
}
