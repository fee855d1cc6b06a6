import {
  type GatewayConfig,
  GatewayWorkers,
  onWorkerOrder,
  readGatewayFile,
  requireSharedStore,
  type RunningGateway,
  serveGateway,
  workerIndex,
} from "@octavo/gateway";
import { OctavoError } from "@octavo/protocol/errors";
import { option } from "@octavo/protocol/options";
import { defineCommand } from "../command.js";
import { endProcessAfter } from "../shutdown-watchdog.js";

const rows = {
  config: option.text("--config <file>", "the gateway's configuration", { default: "gateway.yaml" }),
  workers: option.integer("--workers <n>", "processes that share the port, on one machine", {
    min: 1,
    max: 256,
    default: 1,
  }),
};

/** Beyond the drain timeout: for closing connections and sending the last spans. */
const closingMs = 10_000;

/** `octavo gateway`: one endpoint in front of many servers of models, until told to stop; `check` only reads its configuration. */
export default defineCommand({
  arguments: { "[action]": "`check` reads the configuration, says what it means, and ends" },
  options: rows,
  async run({ config: path, workers }, action?: string) {
    if (action !== undefined && action !== "check")
      throw new OctavoError(
        "invalid_option",
        `there is no octavo gateway ${action}: check is the only action, and --config names the configuration`,
        {
          param: "action",
        },
      );
    const index = workerIndex();
    const config = index === undefined ? await readGatewayFile(path, process.env) : undefined;
    if (config !== undefined) requireSharedStore(config, workers);
    if (action === "check") {
      if (config !== undefined) process.stdout.write(summaryOf(path, config));
    } else if (config !== undefined && workers > 1) await superviseWorkers(workers, config);
    else
      await runGateway(
        await serveGateway({ path, environment: process.env, adminPortOffset: index ?? 0 }),
        index,
      );
  },
});

function summaryOf(path: string, { targets, routes, stages }: GatewayConfig): string {
  const lines = Object.entries(targets).map(
    ([name, { provider, url, models }]) =>
      `target ${name}: ${provider}${url === undefined ? "" : ` at ${new URL(url).origin}`}, ${Object.keys(models).join(", ")}`,
  );
  for (const [name, { models, strategy, targets: asked, fallbacks }] of Object.entries(routes)) {
    const then = fallbacks.length === 0 ? "" : `, then route ${fallbacks.join(", ")}`;
    lines.push(
      `route ${name}: ${models.join(", ")} → ${strategy} over ${asked.map((one) => ("pool" in one ? one.pool : one.target)).join(", ")}${then}`,
    );
  }
  if (stages.size > 0) lines.push(`stages: ${[...stages.keys()].join(", ")}`);
  return `${lines.join("\n")}\n${path} is valid\n`;
}

async function runGateway(gateway: RunningGateway, worker: number | undefined): Promise<void> {
  const who = worker === undefined ? "octavo gateway" : `octavo gateway worker ${worker}`;
  const reload = (): void => {
    gateway.reload().then(
      () => tell(`${who}: configuration reloaded`),
      (thrown: unknown) => tell(`${who}: not reloaded: ${OctavoError.from(thrown).message}`),
    );
  };
  const stopped = new Promise<void>((resolve, reject) => {
    let isStopping = false;
    const stop = (): void => {
      if (isStopping) return;
      isStopping = true;
      endProcessAfter(gateway.drainTimeoutMs + closingMs);
      gateway.stop().then(resolve, reject);
    };
    // the first process of several hears the signals, and tells its workers
    if (worker === undefined) {
      process.on("SIGTERM", stop);
      process.on("SIGINT", stop);
      process.on("SIGHUP", reload);
    } else {
      for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) process.on(signal, () => undefined);
      onWorkerOrder({ reload, stop, metrics: () => gateway.metrics() });
    }
  });
  process.stdout.write(
    `${who}: ${gateway.url}/v1${gateway.adminUrl === undefined ? "" : `, admin ${gateway.adminUrl}`}\n`,
  );
  await stopped;
  if (worker !== undefined) process.exit(0);
}

async function superviseWorkers(count: number, { drain_timeout, admin }: GatewayConfig): Promise<void> {
  const workers = new GatewayWorkers(count, tell);
  if (admin !== undefined)
    process.stdout.write(
      `octavo gateway: metrics of all workers at ${await workers.serveMetrics(admin)}/metrics\n`,
    );
  process.on("SIGHUP", () => workers.reload());
  await new Promise<void>((resolve) => {
    for (const signal of ["SIGTERM", "SIGINT"]) process.once(signal, () => resolve());
  });
  endProcessAfter(drain_timeout + closingMs);
  await workers.stop();
}

function tell(message: string): void {
  process.stderr.write(`${message}\n`);
}
