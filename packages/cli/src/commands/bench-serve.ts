import {
  type ArrivalSpec,
  createProgressLine,
  type DatasetSpec,
  type GoodputBounds,
  loadTest,
  renderTable,
} from "@octavo/loadtest";
import { OctavoError } from "@octavo/protocol/errors";
import {
  inGroup,
  option,
  type OptionType,
  parseJsonObject,
  type ResolvedOptions,
} from "@octavo/protocol/options";
import { defineCommand } from "../command.js";
import { interruptible } from "../interruptible.js";
import { writeTextOf } from "../output/files.js";

const finiteRate = option.number({ min: 1e-6 }, "r");
const rate: OptionType<number> = {
  ...finiteRate,
  parse: (text) => (text === "inf" ? Number.POSITIVE_INFINITY : finiteRate.parse(text, undefined)),
  show: (value) => (Number.isFinite(value) ? String(value) : "inf"),
};

const jsonObject: OptionType<Readonly<Record<string, unknown>>> = {
  placeholder: "json",
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

const bound = option.number({ min: 0 });
const goodput: OptionType<GoodputBounds> = {
  placeholder: "bounds",
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

const positive = option.integer({ min: 1 });
const tokens = option.integer({ min: 1 }, "tokens");

const rows = {
  ...inGroup("Server", {
    baseUrl: {
      flag: "base-url",
      type: option.text("url"),
      default: "http://127.0.0.1:8000",
      help: "server to load",
    },
    endpoint: {
      flag: "endpoint",
      type: option.choice(["completions", "chat"]),
      default: "completions" as const,
      help: "endpoint to use",
    },
    model: {
      flag: "model",
      type: option.text("name"),
      defaultText: "the first one listed",
      help: "served model name",
    },
    apiKey: {
      flag: "api-key",
      type: option.text("key"),
      environment: ["OPENAI_API_KEY"],
      help: "bearer key",
    },
  }),
  ...inGroup("Requests", {
    dataset: {
      flag: "dataset",
      type: option.choice(["random", "shared-prefix", "file", "mooncake", "burstgpt", "azure"]),
      default: "random" as const,
      help: "where prompts come from",
    },
    datasetPath: {
      flag: "dataset-path",
      type: option.text("file"),
      help: "the file of a file or trace dataset",
    },
    inputTokens: {
      flag: "input-len",
      type: tokens,
      default: 512,
      help: "prompt tokens, after the prefix",
    },
    outputTokens: { flag: "output-len", type: tokens, default: 128, help: "tokens to generate" },
    rangeRatio: {
      flag: "range-ratio",
      type: option.number({ min: 0, max: 0.999 }, "r"),
      default: 0,
      help: "lengths uniform in [n(1-r), n(1+r)]",
    },
    prefixTokens: {
      flag: "prefix-len",
      type: tokens,
      default: 448,
      help: "shared-prefix: tokens of the common prefix",
    },
    numPrefixes: {
      flag: "num-prefixes",
      type: positive,
      default: 1,
      help: "shared-prefix: number of distinct prefixes",
    },
    maxInputTokens: {
      flag: "max-input-len",
      type: tokens,
      default: 1_000_000,
      help: "traces: cut longer inputs",
    },
    numRequests: { flag: "num-prompts", type: positive, default: 200, help: "requests to send" },
    ignoreEos: {
      offFlag: "no-ignore-eos",
      type: option.toggle(),
      default: true,
      help: "let the model end before the wanted length",
    },
    temperature: {
      flag: "temperature",
      type: option.number({ min: 0 }, "t"),
      default: 0,
      help: "sampling temperature",
    },
    seed: {
      flag: "seed",
      type: option.integer({ min: 0 }),
      default: 0,
      help: "seed of prompts, lengths and arrivals",
    },
    extraBody: {
      flag: "extra-body",
      type: jsonObject,
      default: {},
      help: "JSON object merged into every request body",
    },
  }),
  ...inGroup("Load", {
    requestRate: {
      flag: "request-rate",
      type: rate,
      default: Number.POSITIVE_INFINITY,
      help: "open loop: requests per second, or inf",
    },
    burstiness: {
      flag: "burstiness",
      type: option.number({ min: 1e-3 }, "shape"),
      default: 1,
      help: "gamma shape of the gaps; 1 is Poisson, lower is burstier",
    },
    constantRate: {
      flag: "constant-rate",
      type: option.toggle(),
      default: false,
      help: "evenly spaced arrivals",
    },
    concurrency: {
      flag: "concurrency",
      type: positive,
      help: "closed loop: this many clients instead of a rate",
    },
    traceSpeedup: {
      flag: "trace-speedup",
      type: option.number({ min: 1e-6 }),
      help: "replay a trace's own arrival times, x times as fast",
    },
    maxConcurrency: {
      flag: "max-concurrency",
      type: positive,
      help: "open loop: never more requests in flight than this",
    },
    warmupRequests: {
      flag: "warmup",
      type: option.integer({ min: 0 }),
      default: 2,
      help: "requests sent before counting",
    },
    timeoutMs: {
      flag: "timeout",
      type: option.seconds({ min: 1 }),
      default: 600_000,
      help: "give up on a request after this time",
    },
    goodput: {
      flag: "goodput",
      type: goodput,
      help: "bounds in ms that a good request meets, e.g. ttft:500,tpot:50,e2e:5000,max_gap:200",
    },
  }),
  ...inGroup("Output", {
    output: { flag: "output", type: option.text("file"), help: "write the full report as JSON" },
    json: {
      flag: "json",
      type: option.toggle(),
      default: false,
      help: "print the report as JSON instead of a table",
    },
  }),
};

type BenchServeFlags = ResolvedOptions<typeof rows>;

/** `octavo bench serve`: the load generator at the command line. Exit code 1 when a request failed. */
export const benchServe = defineCommand({
  options: rows,
  async run(flags) {
    const progress = createProgressLine(process.stderr);
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
    process.stdout.write(flags.json ? json : renderTable(report.summary, title));
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
