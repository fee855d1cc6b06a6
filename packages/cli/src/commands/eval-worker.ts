import { openAiJudge, serveQueue } from "@octavo/evals";
import { OctavoError } from "@octavo/protocol";
import { Command } from "commander";
import { evalAction } from "../eval/eval-action.js";
import { interruptible } from "../interruptible.js";
import { parseCount } from "../options/parse.js";

interface WorkerFlags {
  readonly redis: string;
  readonly queue?: string;
  readonly judge?: string;
  readonly judgeModel?: string;
  readonly judgeKeyEnv?: string;
  readonly evaluatorModule: readonly string[];
  readonly threads?: number;
  readonly concurrency: number;
  readonly lockMs: number;
}

/** `octavo eval worker`: scores what `octavo eval run --redis` puts on a queue. */
export function evalWorkerCommand(): Command {
  return new Command("worker")
    .description("score answers that runs elsewhere put on a queue, until it is stopped")
    .requiredOption("--redis <url>", "where the queue is, such as redis://127.0.0.1:6379")
    .option("--queue <name>", "its name (default: octavo-evals)")
    .option("--judge <url>", "server of the model that judges, up to and including /v1")
    .option("--judge-model <name>", "its model")
    .option("--judge-key-env <name>", "environment variable with its key")
    .option("--evaluator-module <url...>", "modules that export `evaluators`, rows of your own", [])
    .option(
      "--threads <n>",
      "threads that compute scores (default: one for each core, at most 8)",
      parseCount(1),
    )
    .option("--concurrency <n>", "pairs at a time", parseCount(1, 4096), 16)
    .option(
      "--lock-ms <n>",
      "how long the jobs of a worker that died wait for another",
      parseCount(1000),
      30_000,
    )
    .action(evalAction(work));
}

async function work(flags: WorkerFlags): Promise<void> {
  const { judge, judgeModel, judgeKeyEnv, threads, queue, lockMs } = flags;
  if ((judge === undefined) !== (judgeModel === undefined)) {
    throw new OctavoError("invalid_option", "--judge and --judge-model belong together");
  }
  const apiKey = judgeKeyEnv === undefined ? undefined : process.env[judgeKeyEnv];
  if (judgeKeyEnv !== undefined && apiKey === undefined) {
    throw new OctavoError("invalid_option", `--judge-key-env: ${judgeKeyEnv} is not set`);
  }
  const services =
    judge === undefined || judgeModel === undefined
      ? {}
      : {
          judge: openAiJudge({ baseUrl: judge, model: judgeModel, ...(apiKey !== undefined && { apiKey }) }),
        };
  await interruptible(
    (signal) =>
      serveQueue(
        {
          redisUrl: flags.redis,
          services,
          modules: flags.evaluatorModule,
          concurrency: flags.concurrency,
          lockDurationMs: lockMs,
          stalledIntervalMs: Math.ceil(lockMs / 2),
          onReady: () => process.stderr.write("octavo: taking jobs\n"),
          ...(threads !== undefined && { threads }),
          ...(queue !== undefined && { queueName: queue }),
        },
        signal,
      ),
    () => process.stderr.write("octavo: finishing the jobs that are under way\n"),
  );
}
