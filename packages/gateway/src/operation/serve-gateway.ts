import { readFile } from "node:fs/promises";
import { basename } from "node:path";
import { OctavoError, systemProblem } from "@octavo/protocol";
import { loadGatewayConfig } from "../config/load-config.js";
import type { GatewayConfig } from "../config/schema.js";
import { AdminListener } from "../http/admin-listener.js";
import { GatewayListener } from "../http/gateway-listener.js";
import { Gateway } from "./gateway.js";

export interface ServeGatewayOptions {
  readonly path: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Added to the admin port: workers on one machine have one each. */
  readonly adminPortOffset?: number;
}

/** A gateway that listens. Disposing it ends it after the calls under way. */
export interface RunningGateway {
  readonly url: string;
  readonly adminUrl: string | undefined;
  readonly drainTimeoutMs: number;
  /** In Prometheus' text format. */
  metrics(): string;
  /** Reads the file again. Rejects, and goes on as before, where it is refused. */
  reload(): Promise<void>;
  /** Takes no new calls, waits for those under way, closes. */
  stop(): Promise<void>;
}

/** Throws `artifact_not_found` where there is no file, `invalid_option` with its line for a mistake in it. */
export async function readGatewayFile(
  path: string,
  environment: ServeGatewayOptions["environment"],
): Promise<GatewayConfig> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (cause) {
    throw new OctavoError("artifact_not_found", `${path}: ${systemProblem(cause)}`, {
      param: "config",
      cause,
    });
  }
  return loadGatewayConfig({ name: basename(path), text, environment });
}

/** A gateway on its ports, as gateway.yaml says. */
export async function serveGateway(options: ServeGatewayOptions): Promise<RunningGateway> {
  const { path, environment, adminPortOffset = 0 } = options;
  const config = await readGatewayFile(path, environment);
  const gateway = await Gateway.open({ config });
  const listener = new GatewayListener(gateway, config.limits);
  const reload = async (): Promise<void> => {
    const next = await readGatewayFile(path, environment);
    checkFixed(config, next);
    await gateway.reload(next);
  };
  const admin =
    config.admin === undefined ? undefined : new AdminListener({ gateway, admin: config.admin, reload });
  try {
    const { url } = await listener.listen(config.listen.host, config.listen.port);
    const port = config.admin?.port ?? 0;
    const bound = await admin?.listen(port === 0 ? 0 : port + adminPortOffset);
    return {
      url,
      adminUrl: bound?.url,
      drainTimeoutMs: config.drain_timeout,
      metrics: () => gateway.metrics.registry.expose(),
      reload,
      async stop() {
        await gateway.drain(config.drain_timeout);
        await listener.close();
        await admin?.close();
        await gateway.close();
      },
    };
  } catch (thrown) {
    await gateway.close();
    throw thrown;
  }
}

/** Sections that are read at the start alone. */
const fixedSections = ["listen", "admin", "access_log", "tracing"] as const;

function checkFixed(before: GatewayConfig, next: GatewayConfig): void {
  for (const section of fixedSections)
    if (JSON.stringify(before[section]) !== JSON.stringify(next[section]))
      throw new OctavoError("invalid_option", `${section} changed; it takes effect with a restart alone`, {
        param: section,
      });
}
