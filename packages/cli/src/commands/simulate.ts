import { readFile } from "node:fs/promises";
import {
  autoscalingSchema,
  clusterCosts,
  type ClusterCosts,
  type ClusterSimulation,
  findKnee,
  generateCalls,
  type LoadPhase,
  measureCosts,
  reportOf,
  simulateCluster,
  simulatedDeployment,
  type SimulatedCall,
} from "@octavo/cluster";
import { type TraceFormat, traceRows } from "@octavo/loadtest";
import { OctavoError, systemProblem } from "@octavo/protocol/errors";
import { inGroup, option } from "@octavo/protocol/options";
import { defineCommand } from "../command.js";
import { checkOutputs, writeTextOf } from "../output/files.js";
import { readDeployment } from "./cluster.js";

const rows = {
  ...inGroup("Costs", {
    costs: option.text("--costs <file>", "step costs as JSON, as --measure writes them"),
    measure: option.text(
      "--measure <url>",
      "measure the step costs of a replica that has nothing else to do",
    ),
    measureReplicas: option.texts(
      "--measure-replicas <id...>",
      "behind a gateway: replicas that share a machine; what they cost each other is measured too",
    ),
    model: option.text("--model <name>", "its model", { default: "octavo-mini" }),
    writeCosts: option.text("--write-costs <file>", "where measured costs are written"),
    price: option.number("--price <dollars>", "of a replica and hour", { min: 0, default: 0 }),
  }),
  ...inGroup("Load", {
    trace: option.text("--trace <file>", "recorded arrivals and lengths, instead of generated ones"),
    traceFormat: option.choice(
      ["mooncake", "burstgpt", "azure"],
      "--trace-format <name>",
      "format of the trace",
      {
        default: "azure" as TraceFormat,
      },
    ),
    phases: option.text("--phases <list>", "requests per second from a second on, such as 0:5,120:20,300:5", {
      default: "0:10",
    }),
    durationS: option.number("--duration <seconds>", "of generated load", { min: 1, default: 600 }),
    burstiness: option.number("--burstiness <shape>", "of gamma gaps: 1 is Poisson, less is burstier", {
      min: 0.01,
      default: 1,
    }),
    promptTokens: option.integer("--prompt-tokens <n>", "mean of generated prompts", {
      min: 1,
      default: 200,
    }),
    outputTokens: option.integer("--output-tokens <n>", "mean of generated answers", {
      min: 1,
      default: 100,
    }),
    seed: option.integer("--seed <n>", "of load and routing", { min: 0, default: 0 }),
  }),
  ...inGroup("Deployment", {
    config: option.text("--config <file>", "cluster.yaml whose deployment is simulated"),
    deployment: option.text("--deployment <name>", "which one", { defaultText: "the first" }),
    replicas: option.integer("--replicas <n>", "a fixed number, without --config", {
      min: 1,
      max: 10_000,
      default: 1,
    }),
  }),
  ...inGroup("Objective", {
    ttftMs: option.number("--ttft <ms>", "of a request's first token", { min: 0, default: 1000 }),
    tpotMs: option.number("--tpot <ms>", "of each later one, on average", { min: 0, default: 100 }),
    attainment: option.number("--attainment <share>", "of requests within both, for the knee", {
      min: 0.01,
      max: 1,
      default: 0.99,
    }),
    knee: option.toggle("--knee", "look for the highest load that keeps the objective"),
    json: option.text("--json <file>", "write everything as JSON"),
  }),
};

type Options = Parameters<(typeof spec)["run"]>[0];

/** `octavo simulate`: a deployment under a load in virtual time, with the router, autoscaler and scheduler that serve. */
const spec = defineCommand({
  options: rows,
  async run(options) {
    checkOutputs({ json: options.json, "write-costs": options.writeCosts });
    const costs = await costsOf(options);
    const calls = await callsOf(options);
    const simulation: ClusterSimulation = {
      calls,
      seed: options.seed,
      ...(await deploymentOf(options, costs)),
    };
    const objective = { firstTokenMs: options.ttftMs, tokenMs: options.tpotMs };
    const outcome = simulateCluster(simulation);
    const report = reportOf(outcome, objective);
    const knee = options.knee ? findKnee(simulation, objective, options.attainment) : undefined;
    const dollars = (report.replicaSeconds / 3600) * options.price;
    const { firstTokenMs: ttft, tokenMs: tpot } = report;
    const percentiles = ({ p50, p90, p99 }: typeof ttft): string =>
      [p50, p90, p99].map((ms) => ms.toFixed(1)).join(" / ");
    const lines = [
      [
        "requests",
        `${report.numCalls}, ${report.numRefused} refused, ${report.requestsPerSecond.toFixed(1)} per second`,
      ],
      ["output tokens", `${report.outputTokensPerSecond.toFixed(0)} per second`],
      ["replicas", `${report.peakReplicas} at most, ${report.replicaSeconds.toFixed(0)} replica-seconds`],
      ["cost", options.price === 0 ? "no --price" : `$${dollars.toFixed(4)}`],
      ["first token, ms", `${percentiles(ttft)} (p50 / p90 / p99)`],
      ["per token, ms", `${percentiles(tpot)} (p50 / p90 / p99)`],
      [
        "within objective",
        `${(100 * report.attainment).toFixed(2)} % (first token ${options.ttftMs} ms, ${options.tpotMs} ms per token)`,
      ],
      ...(knee === undefined
        ? []
        : [
            [
              "knee",
              knee.requestsPerSecond === undefined
                ? `no load keeps ${100 * options.attainment} %`
                : `${knee.requestsPerSecond.toFixed(1)} requests per second keep ${100 * options.attainment} % (${knee.factor?.toFixed(2)} times the load)`,
            ],
          ]),
    ];
    for (const [name = "", value = ""] of lines) process.stdout.write(`${name.padEnd(18)}${value}\n`);
    if (options.json !== undefined)
      await writeTextOf(
        "json",
        options.json,
        `${JSON.stringify({ costs, report, dollars, targets: outcome.targets, knee }, null, 2)}\n`,
      );
  },
});

export default spec;

async function costsOf({
  costs,
  measure,
  measureReplicas: replicas,
  model,
  writeCosts,
}: Options): Promise<ClusterCosts> {
  if ((costs === undefined) === (measure === undefined))
    throw new OctavoError("invalid_option", "give --costs FILE or --measure URL", { param: "costs" });
  if (measure !== undefined) {
    const measured = await measureCosts({ url: measure.replace(/\/v1\/?$|\/$/, ""), model, replicas });
    if (writeCosts !== undefined)
      await writeTextOf("write-costs", writeCosts, `${JSON.stringify(measured, null, 2)}\n`);
    return measured;
  }
  return readCosts(costs ?? "");
}

/** Throws `invalid_option` that names the file. */
export async function readCosts(path: string): Promise<ClusterCosts> {
  const text = await readText(path, "costs");
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new OctavoError("invalid_option", `${path}: ${(cause as Error).message}`, {
      param: "costs",
      cause,
    });
  }
  const parsed = clusterCosts.safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new OctavoError("invalid_option", `${path}: ${issue?.path.join(".")}: ${issue?.message}`, {
    param: "costs",
  });
}

async function callsOf(options: Options): Promise<readonly SimulatedCall[]> {
  const { trace, traceFormat, phases, durationS, burstiness, promptTokens, outputTokens, seed } = options;
  if (trace === undefined)
    return generateCalls({
      phases: phasesOf(phases, durationS),
      durationS,
      burstiness,
      promptTokens,
      outputTokens,
      seed,
    });
  const content = await readText(trace, "trace");
  return traceRows(content, { path: trace, format: traceFormat }).map((row) => ({
    atS: row.atMs / 1000,
    promptTokens: row.inputTokens,
    outputTokens: row.outputTokens,
  }));
}

function phasesOf(text: string, durationS: number): readonly LoadPhase[] {
  const phases = text.split(",").map((part) => {
    const [fromS = Number.NaN, requestsPerSecond = Number.NaN] = part.split(":").map(Number);
    return { fromS, requestsPerSecond };
  });
  const isRising = phases.every(
    ({ fromS, requestsPerSecond }, at) =>
      fromS >= 0 && fromS < durationS && requestsPerSecond >= 0 && fromS > (phases[at - 1]?.fromS ?? -1),
  );
  if (!isRising)
    throw new OctavoError(
      "invalid_option",
      `--phases: expected rising seconds below the duration with rates, such as 0:5,120:20, not ${JSON.stringify(text)}`,
      {
        param: "phases",
      },
    );
  return phases;
}

async function deploymentOf(
  { config, deployment: name, replicas }: Options,
  costs: ClusterCosts,
): Promise<Omit<ClusterSimulation, "calls" | "seed">> {
  if (config !== undefined) return simulatedDeployment(await readDeployment(config, name), costs);
  return {
    costs,
    autoscaling: autoscalingSchema.parse({ min_replicas: replicas, max_replicas: replicas }),
    maxOngoing: 256,
    maxQueued: -1,
  };
}

async function readText(path: string, param: string): Promise<string> {
  return readFile(path, "utf8").catch((cause: unknown) => {
    throw new OctavoError("artifact_not_found", `${path}: ${systemProblem(cause)}`, { param, cause });
  });
}
