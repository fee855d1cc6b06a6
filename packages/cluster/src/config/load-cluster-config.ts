import { readFile } from "node:fs/promises";
import { basename } from "node:path";
import type { GatewayConfig } from "@octavo/gateway";
import { type ConfigSource, problemOf, readGatewayConfig, withEnvironment } from "@octavo/gateway/parts";
import { OctavoError, systemProblem } from "@octavo/protocol";
import { YamlSource } from "@octavo/protocol/yaml";
import { type ClusterSections, clusterSchema, type DeploymentConfig } from "./deployment-schema.js";

/** An option of `octavo serve` as `engine_kwargs` may name it. */
export interface ServeFlag {
  readonly flag: string;
  readonly takesValue: boolean;
}

export interface ClusterConfig extends Omit<ClusterSections, "gateway"> {
  readonly gateway: GatewayConfig;
  /** Flags of each deployment's replicas, by its name. */
  readonly engineArgs: ReadonlyMap<string, readonly string[]>;
}

/** Options of replicas that the cluster sets itself. */
const ownFlags: ReadonlySet<string> = new Set([
  "host",
  "port",
  "replica_id",
  "replica_key",
  "threads",
  "served_model_name",
  "drain_timeout",
  "api_key",
]);

/** Throws `artifact_not_found` where there is no file, `invalid_option` with its line for a mistake in it. */
export async function readClusterFile(
  path: string,
  environment: ConfigSource["environment"],
  flags: ReadonlyMap<string, ServeFlag>,
): Promise<ClusterConfig> {
  const text = await readFile(path, "utf8").catch((cause: unknown) => {
    throw new OctavoError("artifact_not_found", `${path}: ${systemProblem(cause)}`, {
      param: "config",
      cause,
    });
  });
  return loadClusterConfig({ name: basename(path), text, environment }, flags);
}

/** Reads cluster.yaml and checks all of it. Throws `invalid_option` whose message begins with the line and column at fault. */
export function loadClusterConfig(
  { name, text, environment }: ConfigSource,
  flags: ReadonlyMap<string, ServeFlag>,
): ClusterConfig {
  const source = new YamlSource(name, text);
  const result = clusterSchema.safeParse(withEnvironment(source, environment));
  if (!result.success) throw problemOf(source, result.error.issues);
  const { data } = result;
  const engineArgs = new Map<string, readonly string[]>();
  for (const [index, deployment] of data.deployments.entries()) {
    const path = ["deployments", index];
    if (engineArgs.has(deployment.name))
      throw source.problem([...path, "name"], `there are two deployments ${deployment.name}`);
    engineArgs.set(deployment.name, argsOf(source, path, deployment, flags));
  }
  return { ...data, engineArgs, gateway: gatewayOf(source, data) };
}

function argsOf(
  source: YamlSource,
  path: readonly PropertyKey[],
  { engine_kwargs }: DeploymentConfig,
  flags: ReadonlyMap<string, ServeFlag>,
): readonly string[] {
  return Object.entries(engine_kwargs).flatMap(([name, value]) => {
    const at = [...path, "engine_kwargs", name];
    const row = flags.get(name);
    if (ownFlags.has(name)) throw source.problem(at, "the cluster sets it for each replica");
    if (row === undefined) throw source.problem(at, "octavo serve has no such option");
    if (row.takesValue === (typeof value === "boolean"))
      throw source.problem(at, row.takesValue ? "expected a value" : "expected true or false");
    if (value === true) return [row.flag];
    if (value === false) return row.flag.startsWith("--no-") ? [] : [row.flag.replace("--", "--no-")];
    return (Array.isArray(value) ? value : [value]).flatMap((one) => [row.flag, String(one)]);
  });
}

/** The gateway in front of the deployments: one route each, over its pool. */
function gatewayOf(source: YamlSource, { deployments, gateway }: ClusterSections): GatewayConfig {
  const isOfDeployment = (path: readonly PropertyKey[]): DeploymentConfig | undefined =>
    path[0] === "routes" ? deployments.find(({ name }) => name === path[1]) : undefined;
  const problem: YamlSource["problem"] = (path, message, cause) => {
    const owner = isOfDeployment(path);
    if (owner === undefined) return source.problem(["gateway", ...path], message, cause);
    const place = ["deployments", deployments.indexOf(owner), "routing", ...path.slice(2)];
    return source.problem(place, message, cause);
  };
  const routes = deployments.map(({ name, model_loading_config: { model_id }, routing }) => {
    const { attempts, ...chosen } = routing;
    return [
      name,
      { ...chosen, models: [model_id], targets: [{ pool: name }], retries: { attempts } },
    ] as const;
  });
  const own = gateway["routes"];
  const value = {
    targets: {},
    ...gateway,
    version: 1,
    routes: { ...(typeof own === "object" && own), ...Object.fromEntries(routes) },
  };
  return readGatewayConfig(
    { value: source.value, problem },
    value,
    deployments.map(({ name }) => name),
  );
}
