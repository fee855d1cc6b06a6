import { availableParallelism } from "node:os";
import { datasetFormats, type OpenDatasetOptions } from "@octavo/evals";
import { OctavoError } from "@octavo/protocol/errors";
import { inGroup, option, type ResolvedOptions } from "@octavo/protocol/options";
import { given } from "../options/given.js";

/** How files of cases are read. */
export const datasetRows = {
  format: {
    flag: "format",
    type: option.choice(datasetFormats),
    defaultText: "by what is in the file",
    help: "format of the cases",
  },
  columns: {
    flag: "columns",
    type: option.pairs(option.text("column"), "field=column"),
    help: "CSV and Parquet: the column of each field of a case",
  },
  delimiter: {
    flag: "delimiter",
    type: option.text("character"),
    defaultText: "a comma; a tab in .tsv",
    help: "CSV: what separates cells",
  },
  answers: {
    flag: "answers",
    type: option.text("file"),
    defaultText: "possible_answer/ beside the questions",
    help: "BFCL: the expected answers",
  },
};

export type DatasetFlags = ResolvedOptions<typeof datasetRows>;

export function datasetOptions({ format, columns, delimiter, answers }: DatasetFlags): OpenDatasetOptions {
  return given({ format, columns, delimiter, answers });
}

/** The model that judges. */
export const judgeRows = inGroup("Judge", {
  judge: { flag: "judge", type: option.text("url"), help: "server of the model that judges" },
  judgeModel: { flag: "judge-model", type: option.text("name"), help: "the judge's model" },
  judgeKeyEnv: {
    flag: "judge-key-env",
    type: option.text("name"),
    help: "environment variable with the judge's key",
  },
});

/** The variable that a flag names. Throws `invalid_option` where it is not set. */
export function keyOf(flag: string, variable: string | undefined): string | undefined {
  if (variable === undefined) return undefined;
  const key = process.env[variable];
  if (key !== undefined) return key;
  throw new OctavoError("invalid_option", `--${flag}: ${variable} is not set`, { param: flag });
}

/** Evaluators by name, or as JSON with options. Throws `invalid_option` for what is not JSON. */
export function evaluatorOf(text: string): unknown {
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

/** Which servers are asked, with what cases. */
export const targetRows = {
  ...inGroup("Targets", {
    target: {
      flag: "target",
      type: option.text("url"),
      help: "the server to evaluate, any that speaks OpenAI's API",
    },
    model: {
      flag: "model",
      type: option.text("name"),
      defaultText: "the first that it lists",
      help: "its model",
    },
    apiKeyEnv: { flag: "api-key-env", type: option.text("name"), help: "environment variable with its key" },
    baseline: {
      flag: "baseline",
      type: option.text("url"),
      help: "the server to compare it with, such as one of the unquantised model",
    },
    baselineModel: { flag: "baseline-model", type: option.text("name"), help: "the baseline's model" },
    baselineKeyEnv: {
      flag: "baseline-key-env",
      type: option.text("name"),
      help: "environment variable with the baseline's key",
    },
    replica: {
      flag: "replica",
      type: option.list(option.text("url")),
      help: "each replica by itself, past any load balancer",
    },
    startReplica: {
      flag: "start-replica",
      type: option.text("command"),
      help: "starts one more replica, e.g. 'octavo serve --port {port}'; it ends with the run",
    },
  }),
  ...inGroup("Cases", {
    dataset: {
      flag: "dataset",
      type: option.list(option.text("file")),
      help: "cases: JSON lines, JSON, CSV, Parquet or a benchmark's own files",
    },
    ...datasetRows,
    cases: { flag: "cases", type: option.integer({ min: 1 }), help: "take the first n of each dataset" },
    evaluator: {
      flag: "evaluator",
      type: option.list(option.text("name")),
      help: 'scores answers; octavo eval list has the names. With options: \'{"name": "contains", "options": {...}}\'',
    },
  }),
  ...judgeRows,
  ...inGroup("Run", {
    maxTokens: {
      flag: "max-tokens",
      type: option.integer({ min: 1 }),
      help: "output tokens of cases that do not say",
    },
    temperature: {
      flag: "temperature",
      type: option.number({ min: 0, max: 2 }, "t"),
      defaultText: "0",
      help: "temperature of cases that do not say",
    },
    concurrency: {
      flag: "concurrency",
      type: option.integer({ min: 1, max: 1024 }),
      default: 8,
      help: "requests in flight",
    },
    seed: { flag: "seed", type: option.integer({ min: 0 }), default: 1, help: "seed of all random draws" },
    timeout: { flag: "timeout", type: option.text("time"), help: "end the run after this time, e.g. 30m" },
    requestTimeout: {
      flag: "request-timeout",
      type: option.text("time"),
      default: "2m",
      help: "give up on a request after this time",
    },
    name: { flag: "name", type: option.text("text"), help: "title of the report" },
  }),
};

export type TargetFlags = ResolvedOptions<typeof targetRows>;

/** Where scores are computed, kept and sent. */
export const runnerRows = inGroup("Scoring", {
  journal: {
    flag: "journal",
    type: option.text("file"),
    help: "keep answers and scores here; the next run resumes from them",
  },
  scorerThreads: {
    flag: "scorer-threads",
    type: option.integer({ min: 1, max: 4 * availableParallelism() }),
    defaultText: "on the main thread",
    help: "score on this many threads",
  },
  redis: {
    flag: "redis",
    type: option.text("url"),
    help: "score on the workers of a BullMQ queue there (octavo eval worker)",
  },
  queue: {
    flag: "queue",
    type: option.text("name"),
    defaultText: "octavo-evals",
    help: "name of the queue",
  },
  ray: {
    flag: "ray",
    type: option.text("url"),
    help: "score in jobs of a Ray cluster: its dashboard, such as http://127.0.0.1:8265",
  },
  sharedFolder: {
    flag: "shared-folder",
    type: option.text("path"),
    help: "a folder that all machines of the cluster see under the same path",
  },
  otlpEndpoint: {
    flag: "otlp-endpoint",
    type: option.text("url"),
    help: "send each score to this OpenTelemetry collector, as an event of the answer's span (OTLP over HTTP)",
  },
  otlpHeaders: {
    flag: "otlp-headers",
    type: option.pairs(option.text("value")),
    help: "headers for the collector, such as a key",
  },
});

export type RunnerFlags = ResolvedOptions<typeof runnerRows>;

export const outputRows = inGroup("Output", {
  html: { flag: "html", type: option.text("file"), help: "write a self-contained HTML page" },
  json: {
    flag: "json",
    type: option.text("file"),
    help: "write the whole report as JSON; - for standard output",
  },
  junit: { flag: "junit", type: option.text("file"), help: "write JUnit XML, for continuous integration" },
  markdown: { flag: "markdown", type: option.text("file"), help: "write a comment for a pull request" },
});

export type OutputFlags = ResolvedOptions<typeof outputRows>;
