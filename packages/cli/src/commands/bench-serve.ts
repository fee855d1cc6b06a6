import {
  type ArrivalSpec,
  type DatasetSpec,
  type GoodputBounds,
  loadTest,
  renderLoadSummary,
} from "@octavo/loadtest";
import { OctavoError } from "@octavo/protocol/errors";
import {
  inGroup,
  option,
  type OptionType,
  parseJsonObject,
  type ResolvedOptions,
  valueType,
} from "@octavo/protocol/options";
import { defineCommand } from "../command.js";
import { createLoadLine } from "../output/load-line.js";
import { interruptible } from "../interruptible.js";
import { checkOutputs, writeTextOf } from "../output/files.js";

const finiteRate = valueType.number({ min: 1e-6 });
const rate: OptionType<number> = {
  ...finiteRate,
  parse: (text) => (text === "inf" ? Number.POSITIVE_INFINITY : finiteRate.parse(text, undefined)),
  show: (value) => (Number.isFinite(value) ? String(value) : "inf"),
};

const jsonObject: OptionType<Readonly<Record<string, unknown>>> = {
  expects: "an object",
  accepts: (value) => typeof value === "object",
  parse: parseJsonObject,
  show: (value) => (Object.keys(value).length === 0 ? "" : JSON.stringify(value)),
};

const goodputNames: Readonly<Record<string, keyof GoodputBounds>> = {
  ttft: "ttft",
  tpot: "tpot",
  e2e: "e2e",
  e2el: "e2e",
  max_gap: "maxGap",
};

const bound = valueType.number({ min: 0 });
const goodput: OptionType<GoodputBounds> = {
  expects: "latency bounds in ms",
  accepts: (value) => typeof value === "object",
  parse(text) {
    const bounds: { -readonly [K in keyof GoodputBounds]: number } = {};
    for (const part of text.split(/[\s,]+/).filter((item) => item !== "")) {
      const [name = "", value = ""] = part.split(":");
      const key = goodputNames[name];
      if (key === undefined) {
        const known = Object.keys(goodputNames).join(", ");
        throw new OctavoError("invalid_option", `unknown bound "${name}"; known are ${known}`);
      }
      bounds[key] = bound.parse(value, undefined);
    }
    return bounds;
  },
  show: JSON.stringify,
};

const rows = {
  ...inGroup("Server", {
    baseUrl: option.text("--base-url <url>", "server to load", { default: "http://127.0.0.1:8000" }),
    endpoint: option.choice(["completions", "chat"], "--endpoint <name>", "endpoint to use", {
      default: "completions" as const,
    }),
    model: option.text("--model <name>", "served model name", { defaultText: "the first one listed" }),
    apiKey: option.text("--api-key <key>", "bearer key", { environment: ["OPENAI_API_KEY"] }),
  }),
  ...inGroup("Requests", {
    dataset: option.choice(
      ["random", "shared-prefix", "file", "mooncake", "burstgpt", "azure"],
      "--dataset <name>",
      "where prompts come from",
      { default: "random" as const },
    ),
    datasetPath: option.text("--dataset-path <file>", "the file of a file or trace dataset"),
    inputTokens: option.integer("--input-len <tokens>", "prompt tokens, after the prefix", {
      min: 1,
      default: 512,
    }),
    outputTokens: option.integer("--output-len <tokens>", "tokens to generate", { min: 1, default: 128 }),
    rangeRatio: option.number("--range-ratio <r>", "lengths uniform in [n(1-r), n(1+r)]", {
      min: 0,
      max: 0.999,
      default: 0,
    }),
    prefixTokens: option.integer("--prefix-len <tokens>", "shared-prefix: tokens of the common prefix", {
      min: 1,
      default: 448,
    }),
    numPrefixes: option.integer("--num-prefixes <n>", "shared-prefix: number of distinct prefixes", {
      min: 1,
      default: 1,
    }),
    maxInputTokens: option.integer("--max-input-len <tokens>", "traces: cut longer inputs", {
      min: 1,
      default: 1_000_000,
    }),
    numRequests: option.integer("--num-prompts <n>", "requests to send", { min: 1, default: 200 }),
    ignoreEos: option.toggle("--no-ignore-eos", "let the model end before the wanted length", {
      turnsOff: true,
      default: true,
    }),
    temperature: option.number("--temperature <t>", "sampling temperature", { min: 0, default: 0 }),
    seed: option.integer("--seed <n>", "seed of prompts, lengths and arrivals", { min: 0, default: 0 }),
    extraBody: option.of(jsonObject, "--extra-body <json>", "JSON object merged into every request body", {
      default: {},
    }),
  }),
  ...inGroup("Load", {
    requestRate: option.of(rate, "--request-rate <r>", "open loop: requests per second, or inf", {
      default: Number.POSITIVE_INFINITY,
    }),
    burstiness: option.number(
      "--burstiness <shape>",
      "gamma shape of the gaps; 1 is Poisson, lower is burstier",
      { min: 1e-3, default: 1 },
    ),
    constantRate: option.toggle("--constant-rate", "evenly spaced arrivals"),
    concurrency: option.integer("--concurrency <n>", "closed loop: this many clients instead of a rate", {
      min: 1,
    }),
    traceSpeedup: option.number(
      "--trace-speedup <x>",
      "replay a trace's own arrival times, x times as fast",
      { min: 1e-6 },
    ),
    maxConcurrency: option.integer(
      "--max-concurrency <n>",
      "open loop: never more requests in flight than this",
      { min: 1 },
    ),
    warmupRequests: option.integer("--warmup <n>", "requests sent before counting", { min: 0, default: 2 }),
    timeoutMs: option.seconds("--timeout <seconds>", "give up on a request after this time", {
      min: 1,
      default: 600_000,
    }),
    goodput: option.of(
      goodput,
      "--goodput <bounds>",
      "bounds in ms that a good request meets, e.g. ttft:500,tpot:50,e2e:5000,max_gap:200",
    ),
  }),
  ...inGroup("Output", {
    output: option.text("--output <file>", "write the full report as JSON"),
    json: option.toggle("--json", "print the report as JSON instead of a table"),
  }),
};

type BenchServeFlags = ResolvedOptions<typeof rows>;

/** `octavo bench serve`: the load generator at the command line. Exit code 1 when a request failed. */
export default defineCommand({
  options: rows,
  async run(flags) {
    checkOutputs({ output: flags.output });
    const progress = createLoadLine(process.stderr);
    const report = await interruptible((signal) =>
      loadTest({
        ...flags,
        dataset: datasetOf(flags),
        arrival: arrivalOf(flags),
        onProgress: (state) => progress.update(state),
        onNotice: (message) => process.stderr.write(`${message}\n`),
        signal,
      }),
    );
    progress.end();
    const json = `${JSON.stringify(report, null, 2)}\n`;
    if (flags.output !== undefined) await writeTextOf("output", flags.output, json);
    const title = `${report.target.model} at ${report.target.baseUrl}`;
    process.stdout.write(flags.json ? json : renderLoadSummary(report.summary, title));
    if (report.summary.completed < report.summary.requests) process.exitCode = 1;
  },
});

function datasetOf(flags: BenchServeFlags): DatasetSpec {
  switch (flags.dataset) {
    case "random":
      return { kind: "random" };
    case "shared-prefix":
      return { kind: "shared-prefix", prefixTokens: flags.prefixTokens, numPrefixes: flags.numPrefixes };
    case "file":
      return { kind: "file", path: datasetPath(flags) };
    case "mooncake":
    case "burstgpt":
    case "azure":
      return { kind: "trace", path: datasetPath(flags), format: flags.dataset };
  }
}

function datasetPath(flags: BenchServeFlags): string {
  if (flags.datasetPath === undefined) {
    throw new OctavoError("invalid_option", `--dataset ${flags.dataset} needs --dataset-path`, {
      param: "dataset-path",
    });
  }
  return flags.datasetPath;
}

function arrivalOf(flags: BenchServeFlags): ArrivalSpec {
  if (flags.concurrency !== undefined) return { kind: "concurrency", concurrency: flags.concurrency };
  if (flags.traceSpeedup !== undefined) return { kind: "trace", speedup: flags.traceSpeedup };
  if (flags.requestRate === Number.POSITIVE_INFINITY) return { kind: "burst" };
  if (flags.constantRate) return { kind: "constant", requestsPerSecond: flags.requestRate };
  if (flags.burstiness === 1) return { kind: "poisson", requestsPerSecond: flags.requestRate };
  return { kind: "gamma", requestsPerSecond: flags.requestRate, burstiness: flags.burstiness };
}
