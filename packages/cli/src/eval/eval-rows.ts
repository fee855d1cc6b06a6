import { datasetFormats, type OpenDatasetOptions, readEvaluatorFile } from "@octavo/evals";
import { OctavoError } from "@octavo/protocol/errors";
import { given, inGroup, option, type ResolvedOptions, valueType } from "@octavo/protocol/options";

/** How files of cases are read. */
export const datasetRows = {
  format: option.choice(datasetFormats, "--format <name>", "format of the cases", {
    defaultText: "by what is in the file",
  }),
  columns: option.of(
    valueType.pairs(valueType.text()),
    "--columns <field=column...>",
    "CSV and Parquet: the column of each field of a case",
  ),
  delimiter: option.text("--delimiter <character>", "CSV: what separates cells", {
    defaultText: "a comma; a tab in .tsv",
  }),
  answers: option.text("--answers <file>", "BFCL: the expected answers", {
    defaultText: "possible_answer/ beside the questions",
  }),
  prompt: option.text("--prompt <file>", "MMLU-Pro, LongBench v2, HLE: the benchmark's own prompt", {
    defaultText: "Octavo's",
  }),
  examples: option.text(
    "--examples <file>",
    "MMLU-Pro, with --prompt: its validation file, for worked examples",
  ),
};

export type DatasetFlags = ResolvedOptions<typeof datasetRows>;

export function datasetOptions({
  format,
  columns,
  delimiter,
  answers,
  prompt,
  examples,
}: DatasetFlags): OpenDatasetOptions {
  return given({ format, columns, delimiter, answers, prompt, examples });
}

/** The model that judges. */
export const judgeRows = inGroup("Judge", {
  judge: option.text("--judge <url>", "server of the model that judges"),
  judgeModel: option.text("--judge-model <name>", "the judge's model"),
  judgeKeyEnv: option.text("--judge-key-env <name>", "environment variable with the judge's key"),
});

/** The variable that a flag names. Throws `invalid_option` where it is not set. */
export function keyOf(flag: string, variable: string | undefined): string | undefined {
  if (variable === undefined) return undefined;
  const key = process.env[variable];
  if (key !== undefined) return key;
  throw new OctavoError("invalid_option", `--${flag}: ${variable} is not set`, { param: flag });
}

/** An evaluator by name, as JSON with options, or of a file. Throws `invalid_option` for what is none of them. */
export function evaluatorOf(text: string): unknown {
  if (/\.(ya?ml|json)$/.test(text)) return readEvaluatorFile(text);
  if (!text.trimStart().startsWith("{")) return text;
  try {
    return JSON.parse(text) as unknown;
  } catch (cause) {
    throw new OctavoError("invalid_option", `--evaluator: not JSON: ${text.slice(0, 200)}`, {
      param: "evaluator",
      cause,
    });
  }
}

/** Recorded calls: the `content` folder of a trace store, OTLP bodies, exports. */
export const spanRows = inGroup("Spans", {
  spans: option.texts(
    "--spans <file...>",
    "recorded calls with their content: files (JSON, JSON lines, Parquet) or folders of them",
  ),
  owner: option.text("--owner <name>", "read spans of this owner only, such as 'tenant acme' or 'key 0'", {
    defaultText: "all",
  }),
});

export type SpanFlags = ResolvedOptions<typeof spanRows>;

/** The servers under test and the cases. */
export const targetRows = {
  ...inGroup("Targets", {
    target: option.text("--target <url>", "the server to evaluate, any that speaks OpenAI's API"),
    model: option.text("--model <name>", "its model", { defaultText: "the first that it lists" }),
    apiKeyEnv: option.text("--api-key-env <name>", "environment variable with its key"),
    noStream: option.toggle("--no-stream", "ask for whole answers, never for streams"),
    baseline: option.text(
      "--baseline <url>",
      "the server to compare it with, such as one of the unquantised model",
    ),
    baselineModel: option.text("--baseline-model <name>", "the baseline's model"),
    baselineKeyEnv: option.text("--baseline-key-env <name>", "environment variable with the baseline's key"),
    replica: option.texts("--replica <url...>", "each replica by itself, past any load balancer"),
    startReplica: option.text(
      "--start-replica <command>",
      "starts one more replica, e.g. 'octavo serve --port {port}'; it ends with the run",
    ),
  }),
  ...inGroup("Cases", {
    dataset: option.texts(
      "--dataset <file...>",
      "cases: JSON lines, JSON, CSV, Parquet or a benchmark's own files",
    ),
    ...datasetRows,
    cases: option.integer(
      "--cases <n>",
      "score a sample of n of each dataset, each kind of case with its share",
      { min: 1 },
    ),
    evaluator: option.texts(
      "--evaluator <name...>",
      'scores answers; octavo eval list has the names. With options: \'{"name": "contains", "options": {...}}\'; a file of one: NAME.yaml',
    ),
  }),
  ...judgeRows,
  ...inGroup("Run", {
    maxTokens: option.integer("--max-tokens <n>", "output tokens of cases that do not say", { min: 1 }),
    temperature: option.number("--temperature <t>", "temperature of cases that do not say", {
      min: 0,
      max: 2,
      defaultText: "0",
    }),
    concurrency: option.integer("--concurrency <n>", "requests in flight", { min: 1, max: 1024, default: 8 }),
    seed: option.integer("--seed <n>", "seed of all random draws", { min: 0, default: 1 }),
    timeout: option.text("--timeout <time>", "end the run after this time, e.g. 30m"),
    requestTimeout: option.text("--request-timeout <time>", "give up on a request after this time", {
      default: "2m",
    }),
    name: option.text("--name <text>", "title of the report"),
  }),
};

export type TargetFlags = ResolvedOptions<typeof targetRows>;

/** Where scores are computed, kept and sent. */
export const runnerRows = inGroup("Scoring", {
  journal: option.text("--journal <file>", "keep answers and scores here; the next run resumes from them"),
  scorerThreads: option.integer("--scorer-threads <n>", "score on this many threads", {
    min: 1,
    max: 256,
    defaultText: "on the main thread",
  }),
  redis: option.text("--redis <url>", "score on the workers of a BullMQ queue there (octavo eval worker)"),
  queue: option.text("--queue <name>", "name of the queue", { defaultText: "octavo-evals" }),
  ray: option.text(
    "--ray <url>",
    "score in jobs of a Ray cluster: its dashboard, such as http://127.0.0.1:8265",
  ),
  sharedFolder: option.text(
    "--shared-folder <path>",
    "a folder that all machines of the cluster see under the same path",
  ),
  otlpEndpoint: option.text(
    "--otlp-endpoint <url>",
    "send each score to this OpenTelemetry collector, as an event of the answer's span (OTLP over HTTP)",
  ),
  otlpHeaders: option.of(
    valueType.pairs(valueType.text()),
    "--otlp-headers <name=value...>",
    "headers for the collector, such as a key",
  ),
});

export type RunnerFlags = ResolvedOptions<typeof runnerRows>;

export const outputRows = inGroup("Output", {
  html: option.text("--html <file>", "write a self-contained HTML page"),
  json: option.text("--json <file>", "write the whole report as JSON; - for standard output"),
  junit: option.text("--junit <file>", "write JUnit XML, for continuous integration"),
  markdown: option.text("--markdown <file>", "write a comment for a pull request"),
});

export type OutputFlags = ResolvedOptions<typeof outputRows>;
