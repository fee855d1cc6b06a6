import { createHash } from "node:crypto";
import { Gateway, GatewayListener } from "@octavo/gateway";
import { AdminListener, type ConfigSource, TargetPool } from "@octavo/gateway/parts";
import { OctavoError } from "@octavo/protocol";
import { type ClusterConfig, readClusterFile, type ServeFlag } from "../config/load-cluster-config.js";
import { DeploymentController } from "../controller/deployment-controller.js";
import { openDriver } from "../drivers/open-driver.js";
import type { ReplicaDriver, ReplicaSpec } from "../drivers/replica-driver.js";
import { clusterRoutes } from "./admin-routes.js";
import { registerClusterMetrics } from "./cluster-metrics.js";

export interface ServeClusterOptions {
  readonly path: string;
  readonly environment: ConfigSource["environment"];
  /** Options of `octavo serve`, by the names that `engine_kwargs` have. */
  readonly flags: ReadonlyMap<string, ServeFlag>;
  /** What stands before `serve`: Node and octavo's script. */
  readonly command: readonly string[];
  /** What starts a process that waits to be a replica on this machine. */
  readonly standby?: readonly string[];
  readonly tell: (message: string) => void;
}

export interface RunningCluster {
  readonly url: string;
  readonly adminUrl: string | undefined;
  /** The longest that `stop` may take. */
  readonly stopTimeoutMs: number;
  readonly controllers: readonly DeploymentController[];
  readonly driver: ReplicaDriver;
  /** Reads the file again. Rejects, and goes on as before, where it is refused. */
  reload(): Promise<void>;
  /** Takes no new calls, waits for those under way, stops the replicas. */
  stop(): Promise<void>;
}

export function specsOf({ deployments, engineArgs }: ClusterConfig): readonly ReplicaSpec[] {
  return deployments.map((deployment) => {
    const args = engineArgs.get(deployment.name) ?? [];
    const { model_loading_config, ray_actor_options } = deployment;
    const identity = JSON.stringify([model_loading_config, ray_actor_options, args]);
    const version = createHash("sha256").update(identity).digest("hex").slice(0, 12);
    return { deployment, engineArgs: args, version };
  });
}

/** Throws `invalid_option` that lists what cannot be met where replicas run. */
export async function checkFeasible(driver: ReplicaDriver, specs: readonly ReplicaSpec[]): Promise<void> {
  const problems = await driver.problems(specs);
  if (problems.length > 0)
    throw new OctavoError("invalid_option", `this cannot be met here:\n  ${problems.join("\n  ")}`, {
      param: "config",
    });
}

/** A cluster on its ports, as cluster.yaml says. */
export async function serveCluster(options: ServeClusterOptions): Promise<RunningCluster> {
  const { path, environment, flags, command, standby, tell } = options;
  const config = await readClusterFile(path, environment, flags);
  const driver = openDriver({ config: config.driver, command, standby, tell });
  const specs = specsOf(config);
  await checkFeasible(driver, specs);
  const pools = new Map(
    config.deployments.map(({ name, max_queued_requests: maxQueued }) => [
      name,
      new TargetPool({ name, maxQueued }),
    ]),
  );
  const gateway = await Gateway.open({ config: config.gateway, pools });
  const controllers: DeploymentController[] = [];
  const reload = async (): Promise<void> => {
    const next = await readClusterFile(path, environment, flags);
    checkFixedSections(config, next);
    const nextSpecs = specsOf(next);
    await checkFeasible(driver, nextSpecs);
    await gateway.reload(next.gateway);
    for (const spec of nextSpecs) controllers.find(({ name }) => name === spec.deployment.name)?.update(spec);
  };
  const { admin: adminConfig, listen, limits } = config.gateway;
  const listener = new GatewayListener(gateway, limits);
  const admin =
    adminConfig === undefined
      ? undefined
      : new AdminListener({ gateway, admin: adminConfig, reload, routes: clusterRoutes(controllers, pools) });
  const stop = async (): Promise<void> => {
    await gateway.drain(config.gateway.drain_timeout);
    await listener.close();
    await admin?.close();
    await Promise.all(controllers.map((controller) => controller.close()));
    await driver.close();
    await gateway.close();
  };
  try {
    // ports first: one that is taken is said before anything is started
    const { url } = await listener.listen(listen.host, listen.port);
    const bound = await admin?.listen();
    for (const spec of specs) {
      const pool = pools.get(spec.deployment.name);
      if (pool !== undefined) controllers.push(new DeploymentController({ spec, driver, pool, tell }));
    }
    registerClusterMetrics(gateway.metrics.registry, controllers, pools, () => driver.droppedLogLines ?? 0);
    const graceS = Math.max(...config.deployments.map((one) => one.graceful_shutdown_timeout_s));
    return {
      url,
      adminUrl: bound?.url,
      stopTimeoutMs: config.gateway.drain_timeout + graceS * 1000,
      controllers,
      driver,
      reload,
      stop,
    };
  } catch (thrown) {
    await stop();
    throw thrown;
  }
}

/** Sections that are read at the start alone. */
function checkFixedSections(before: ClusterConfig, next: ClusterConfig): void {
  const names = ({ deployments }: ClusterConfig): string => deployments.map(({ name }) => name).join();
  const fixed: readonly (readonly [string, unknown, unknown])[] = [
    ["driver", before.driver, next.driver],
    ["deployments", names(before), names(next)],
    ...(["listen", "admin", "access_log", "tracing"] as const).map(
      (name) => [`gateway.${name}`, before.gateway[name], next.gateway[name]] as const,
    ),
  ];
  for (const [section, was, is] of fixed)
    if (JSON.stringify(was) !== JSON.stringify(is))
      throw new OctavoError("invalid_option", `${section} changed; it takes effect with a restart alone`, {
        param: section,
      });
}
