import { writeFile } from "node:fs/promises";
import { OctavoError } from "@octavo/protocol";
import {
  type ArrivalSpec,
  createProgressLine,
  type DatasetSpec,
  type GoodputBounds,
  loadTest,
  renderLoadSummary,
  type TraceFormat,
} from "@octavo/loadtest";
import { Command, InvalidArgumentError, Option } from "commander";
import { parseCount, parseJsonObject, parseNumber } from "../options/parse.js";

interface BenchServeFlags {
  readonly baseUrl: string;
  readonly endpoint: "completions" | "chat";
  readonly model?: string;
  readonly apiKey?: string;
  readonly dataset: "random" | "shared-prefix" | "file" | TraceFormat;
  readonly datasetPath?: string;
  readonly prefixLen: number;
  readonly numPrefixes: number;
  readonly inputLen: number;
  readonly outputLen: number;
  readonly rangeRatio: number;
  readonly maxInputLen: number;
  readonly numPrompts: number;
  readonly requestRate: number;
  readonly burstiness: number;
  readonly constantRate?: boolean;
  readonly concurrency?: number;
  readonly traceSpeedup?: number;
  readonly maxConcurrency?: number;
  readonly ignoreEos: boolean;
  readonly temperature: number;
  readonly seed: number;
  readonly warmup: number;
  readonly timeout: number;
  readonly goodput?: GoodputBounds;
  readonly extraBody?: Readonly<Record<string, unknown>>;
  readonly output?: string;
  readonly json?: boolean;
}

/** `octavo bench serve`: the load generator at the command line. Exit code 1 when a request failed. */
export function benchServeCommand(): Command {
  return new Command("serve")
    .description("load any OpenAI-compatible server and report the latencies its clients saw")
    .option("--base-url <url>", "server to load", "http://127.0.0.1:8000")
    .addOption(
      new Option("--endpoint <name>", "endpoint to use")
        .choices(["completions", "chat"])
        .default("completions"),
    )
    .option("--model <name>", "served model name (default: the first one listed)")
    .option("--api-key <key>", "bearer key (default: $OPENAI_API_KEY)")
    .addOption(
      new Option("--dataset <name>", "where prompts come from")
        .choices(["random", "shared-prefix", "file", "mooncake", "burstgpt", "azure"])
        .default("random"),
    )
    .option("--dataset-path <file>", "the file of a file or trace dataset")
    .option("--input-len <tokens>", "prompt tokens (after the prefix)", parseCount(1), 512)
    .option("--output-len <tokens>", "tokens to generate", parseCount(1), 128)
    .option("--range-ratio <r>", "lengths uniform in [n(1-r), n(1+r)]", parseNumber(0, 0.999), 0)
    .option("--prefix-len <tokens>", "shared-prefix: tokens of the common prefix", parseCount(1), 448)
    .option("--num-prefixes <n>", "shared-prefix: number of distinct prefixes", parseCount(1), 1)
    .option("--max-input-len <tokens>", "traces: cut longer inputs", parseCount(1), 1_000_000)
    .option("--num-prompts <n>", "requests to send", parseCount(1), 200)
    .option(
      "--request-rate <r>",
      "open loop: requests per second, or inf",
      parseRate,
      Number.POSITIVE_INFINITY,
    )
    .option(
      "--burstiness <shape>",
      "gamma shape of the gaps; 1 is Poisson, lower is burstier",
      parseNumber(1e-3),
      1,
    )
    .option("--constant-rate", "evenly spaced arrivals")
    .option("--concurrency <n>", "closed loop: this many clients instead of a rate", parseCount(1))
    .option("--trace-speedup <x>", "play a trace's own arrival times, x times as fast", parseNumber(1e-6))
    .option("--max-concurrency <n>", "open loop: never more requests in flight than this", parseCount(1))
    .option("--no-ignore-eos", "let the model end before the wanted length")
    .option("--temperature <t>", "sampling temperature", parseNumber(0), 0)
    .option("--seed <n>", "seed of prompts, lengths and arrivals", parseCount(0), 0)
    .option("--warmup <n>", "requests sent before counting", parseCount(0), 2)
    .option("--timeout <seconds>", "give a request up after", parseNumber(0.001), 600)
    .option(
      "--goodput <bounds>",
      "ms bounds a good request meets, e.g. ttft:500,tpot:50,e2e:5000,max_gap:200",
      parseGoodput,
    )
    .option("--extra-body <json>", "merged into every request body", parseJsonObject)
    .option("--output <file>", "write the full report as JSON")
    .option("--json", "print the report as JSON instead of a table")
    .action((flags: BenchServeFlags) => benchServe(flags));
}

async function benchServe(flags: BenchServeFlags): Promise<void> {
  const progress = createProgressLine(process.stderr);
  const interrupt = new AbortController();
  const onInterrupt = () => interrupt.abort();
  process.once("SIGINT", onInterrupt);
  const apiKey = flags.apiKey ?? process.env["OPENAI_API_KEY"];
  const report = await loadTest({
    baseUrl: flags.baseUrl,
    endpoint: flags.endpoint,
    model: flags.model,
    apiKey,
    dataset: datasetOf(flags),
    arrival: arrivalOf(flags),
    numRequests: flags.numPrompts,
    inputTokens: flags.inputLen,
    outputTokens: flags.outputLen,
    rangeRatio: flags.rangeRatio,
    ignoreEos: flags.ignoreEos,
    temperature: flags.temperature,
    seed: flags.seed,
    warmupRequests: flags.warmup,
    maxConcurrency: flags.maxConcurrency,
    timeoutMs: flags.timeout * 1000,
    maxInputTokens: flags.maxInputLen,
    goodput: flags.goodput,
    extraBody: flags.extraBody ?? {},
    onProgress: (state) => progress.update(state),
    onNotice: (message) => process.stderr.write(`${message}\n`),
    signal: interrupt.signal,
  });
  progress.end();
  process.removeListener("SIGINT", onInterrupt);
  const json = `${JSON.stringify(report, null, 2)}\n`;
  if (flags.output !== undefined) await writeFile(flags.output, json);
  const title = `${report.target.model} at ${report.target.baseUrl}`;
  process.stdout.write(flags.json ? json : renderLoadSummary(report.summary, title));
  if (report.summary.completed < report.summary.requests) process.exitCode = 1;
}

function datasetOf(flags: BenchServeFlags): DatasetSpec {
  switch (flags.dataset) {
    case "random":
      return { kind: "random" };
    case "shared-prefix":
      return { kind: "shared-prefix", prefixTokens: flags.prefixLen, numPrefixes: flags.numPrefixes };
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

function parseRate(text: string): number {
  return text === "inf" ? Number.POSITIVE_INFINITY : parseNumber(1e-6)(text);
}

const goodputNames: Readonly<Record<string, keyof GoodputBounds>> = {
  ttft: "ttft",
  tpot: "tpot",
  e2e: "e2e",
  e2el: "e2e",
  max_gap: "maxGap",
};

function parseGoodput(text: string): GoodputBounds {
  const bounds: { -readonly [K in keyof GoodputBounds]: number } = {};
  for (const part of text.split(/[\s,]+/).filter((item) => item !== "")) {
    const [name = "", value = ""] = part.split(":");
    const key = goodputNames[name];
    if (key === undefined) {
      throw new InvalidArgumentError(
        `unknown bound "${name}"; known are ${Object.keys(goodputNames).join(", ")}.`,
      );
    }
    bounds[key] = parseNumber(0)(value);
  }
  return bounds;
}
