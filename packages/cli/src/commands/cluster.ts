import {
  checkFeasible,
  type ClusterConfig,
  openDriver,
  readClusterFile,
  type RunningCluster,
  serveCluster,
  type ServeFlag,
  specsOf,
} from "@octavo/cluster";
import { OctavoError } from "@octavo/protocol/errors";
import { option } from "@octavo/protocol/options";
import { fileURLToPath } from "node:url";
import { defineCommand } from "../command.js";
import { serveRows } from "../options/serve-options.js";
import { endProcessAfter } from "../shutdown-watchdog.js";

const rows = {
  config: option.text("--config <file>", "the cluster's configuration", { default: "cluster.yaml" }),
};

/** Beyond the drain timeouts: for closing connections and sending the last spans. */
const closingMs = 10_000;

const script = (path: string): readonly string[] => [
  process.execPath,
  fileURLToPath(new URL(path, import.meta.url)),
];
const command = script("../main.js");
const standby = script("../serve/standby.js");

/** `octavo cluster`: deployments of many replicas behind one gateway, until told to stop; `check` only reads its configuration. */
export default defineCommand({
  arguments: {
    "[action]": "`check` reads the configuration, says what it means and whether it can be met, and ends",
  },
  options: rows,
  async run({ config: path }, action?: string) {
    if (action !== undefined && action !== "check")
      throw new OctavoError(
        "invalid_option",
        `there is no octavo cluster ${action}: check is the only action, and --config names the configuration`,
        {
          param: "action",
        },
      );
    const flags = kwargFlags();
    if (action === undefined) {
      await run(await serveCluster({ path, environment: process.env, flags, command, standby, tell }));
      return;
    }
    const config = await readClusterFile(path, process.env, flags);
    await checkFeasible(openDriver({ config: config.driver, command, tell }), specsOf(config));
    process.stdout.write(`${summaryOf(config)}${path} is valid and can be met here\n`);
  },
});

/** Options of `octavo serve` by the names that `engine_kwargs` have. */
export function kwargFlags(): ReadonlyMap<string, ServeFlag> {
  return new Map(
    Object.values(serveRows).flatMap(({ flag }): [string, ServeFlag][] => {
      if (flag === undefined) return [];
      const [name = ""] = flag.replace("[no-]", "").split(" ");
      return [[name.slice(2).replaceAll("-", "_"), { flag: name, takesValue: flag.includes("<") }]];
    }),
  );
}

/** One deployment of a cluster.yaml; the first without a name. */
export async function readDeployment(
  path: string,
  name: string | undefined,
): Promise<ClusterConfig["deployments"][number]> {
  const { deployments } = await readClusterFile(path, process.env, kwargFlags());
  const found = name === undefined ? deployments[0] : deployments.find((one) => one.name === name);
  if (found === undefined)
    throw new OctavoError("invalid_option", `${path} has no deployment ${name}`, { param: "deployment" });
  return found;
}

function summaryOf({ deployments }: ClusterConfig): string {
  return deployments
    .map(({ name, model_loading_config: { model_id }, autoscaling, ray_actor_options: { num_cpus } }) => {
      const { min_replicas: least, max_replicas: most, target_ongoing_requests: target } = autoscaling;
      const count = least === most ? `${least}` : `${least} to ${most} replicas, ${target} requests each`;
      return `deployment ${name}: ${model_id} → ${count}${least === most ? " replicas" : ""}, ${num_cpus} cores each\n`;
    })
    .join("");
}

async function run(cluster: RunningCluster): Promise<void> {
  process.on("SIGHUP", () => {
    cluster.reload().then(
      () => tell("configuration reloaded"),
      (thrown: unknown) => tell(`not reloaded: ${OctavoError.from(thrown).message}`),
    );
  });
  const stopped = new Promise<void>((resolve, reject) => {
    let isStopping = false;
    for (const signal of ["SIGTERM", "SIGINT"] as const)
      process.on(signal, () => {
        if (isStopping) return;
        isStopping = true;
        endProcessAfter(cluster.stopTimeoutMs + closingMs);
        cluster.stop().then(resolve, reject);
      });
  });
  const admin = cluster.adminUrl === undefined ? "" : `, admin ${cluster.adminUrl}`;
  process.stdout.write(`octavo cluster: ${cluster.url}/v1${admin}\n`);
  await stopped;
}

function tell(message: string): void {
  process.stderr.write(`octavo cluster: ${message}\n`);
}
