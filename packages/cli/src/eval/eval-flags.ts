import { availableParallelism } from "node:os";
import type { Command } from "commander";
import { parseCount, parseHeader, parseNumber } from "../options/parse.js";
import { datasetFlags, type DatasetFlags } from "./dataset-flags.js";

/** Who is asked, with what, and where the results go. */
export interface TargetFlags extends DatasetFlags {
  readonly target?: string;
  readonly model?: string;
  readonly apiKeyEnv?: string;
  readonly baseline?: string;
  readonly baselineModel?: string;
  readonly baselineKeyEnv?: string;
  readonly replica?: readonly string[];
  readonly startReplica?: string;
  readonly dataset?: readonly string[];
  readonly cases?: number;
  readonly evaluator?: readonly string[];
  readonly judge?: string;
  readonly judgeModel?: string;
  readonly judgeKeyEnv?: string;
  readonly maxTokens?: number;
  readonly temperature?: number;
  readonly concurrency: number;
  readonly seed: number;
  readonly timeout?: string;
  readonly requestTimeout: string;
  readonly name?: string;
}

export interface OutputFlags {
  readonly html?: string;
  readonly json?: string;
  readonly junit?: string;
  readonly markdown?: string;
}

export interface RunnerFlags {
  readonly journal?: string;
  readonly scorerThreads?: number;
  readonly redis?: string;
  readonly queue?: string;
  readonly ray?: string;
  readonly sharedFolder?: string;
  readonly otlpEndpoint?: string;
  readonly otlpHeaders?: Readonly<Record<string, string>>;
}

export function targetFlags(command: Command): Command {
  const targets = command
    .optionsGroup("Targets:")
    .option("--target <url>", "the server to evaluate, any that speaks OpenAI's API")
    .option("--model <name>", "its model (default: the first that it lists)")
    .option("--api-key-env <name>", "environment variable with its key")
    .option("--baseline <url>", "what it is held against, such as the unquantised model")
    .option("--baseline-model <name>", "the baseline's model")
    .option("--baseline-key-env <name>", "environment variable with the baseline's key")
    .option("--replica <url...>", "each replica by itself, past any balancer")
    .option(
      "--start-replica <command>",
      "starts one more replica, e.g. 'octavo serve --port {port}'; it is ended with the run",
    )
    .optionsGroup("Cases:")
    .option("--dataset <file...>", "cases: JSON lines, JSON, CSV, Parquet or a benchmark's own files");
  return datasetFlags(targets)
    .option("--cases <n>", "take the first n of each dataset", parseCount(1))
    .option(
      "--evaluator <name...>",
      'scores answers; octavo eval list has their names. With options: \'{"name": "contains", "options": {...}}\'',
    )
    .optionsGroup("Judge:")
    .option("--judge <url>", "server of the model that judges")
    .option("--judge-model <name>", "its model")
    .option("--judge-key-env <name>", "environment variable with its key")
    .optionsGroup("Run:")
    .option("--max-tokens <n>", "output tokens of cases that do not say", parseCount(1))
    .option("--temperature <t>", "temperature of cases that do not say (default: 0)", parseNumber(0, 2))
    .option("--concurrency <n>", "requests in flight", parseCount(1, 1024), 8)
    .option("--seed <n>", "seed of whatever is drawn", parseCount(0), 1)
    .option("--timeout <time>", "end the run after, e.g. 30m")
    .option("--request-timeout <time>", "give a request up after", "2m")
    .option("--name <text>", "title of the report");
}

export function runnerFlags(command: Command): Command {
  return command
    .option("--journal <file>", "keep answers and scores, and go on from them when run again")
    .option(
      "--scorer-threads <n>",
      "score on threads (default: on this one)",
      parseCount(1, 4 * availableParallelism()),
    )
    .option("--redis <url>", "score on the workers of a BullMQ queue there (octavo eval worker)")
    .option("--queue <name>", "the queue's name (default: octavo-evals)")
    .option("--ray <url>", "score in jobs of a Ray cluster: its dashboard, such as http://127.0.0.1:8265")
    .option("--shared-folder <path>", "a folder that the cluster's machines see under the same path")
    .option(
      "--otlp-endpoint <url>",
      "send each score to this OpenTelemetry collector, an event at the answer's span (OTLP over HTTP)",
    )
    .option("--otlp-headers <name=value...>", "headers of what is sent there, such as a key", parseHeader);
}

export function outputFlags(command: Command): Command {
  return command
    .optionsGroup("Output:")
    .option("--html <file>", "a page with everything, readable without a network")
    .option("--json <file>", "the whole report as JSON; - for standard output")
    .option("--junit <file>", "JUnit XML, for continuous integration")
    .option("--markdown <file>", "a comment for a pull request");
}
