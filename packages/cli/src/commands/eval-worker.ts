import { openAiJudge, serveQueue } from "@octavo/evals";
import { OctavoError } from "@octavo/protocol/errors";
import { option } from "@octavo/protocol/options";
import { defineCommand } from "../command.js";
import { judgeRows, keyOf, runnerRows } from "../eval/eval-rows.js";
import { interruptible } from "../interruptible.js";

/** `octavo eval worker`: scores what `octavo eval run --redis` puts on a queue. */
export const evalWorkerCommand = defineCommand({
  options: {
    redis: option.text("--redis <url>", "where the queue is, such as redis://127.0.0.1:6379", {
      isRequired: true,
    }),
    queue: { ...runnerRows.queue, group: "Options" },
    ...judgeRows,
    evaluatorModule: option.texts(
      "--evaluator-module <url...>",
      "modules that export `evaluators`, rows of your own",
      { default: [] },
    ),
    threads: option.integer("--threads <n>", "threads that compute scores", {
      min: 1,
      defaultText: "one for each core, at most 8",
    }),
    concurrency: option.integer("--concurrency <n>", "answers scored at the same time", {
      min: 1,
      max: 4096,
      default: 16,
    }),
    lockMs: option.integer(
      "--lock-ms <ms>",
      "milliseconds after which another worker takes over the jobs of one that died",
      { min: 1000, default: 30_000 },
    ),
  },
  async run({ redis, queue, judge, judgeModel, judgeKeyEnv, evaluatorModule, threads, concurrency, lockMs }) {
    if ((judge === undefined) !== (judgeModel === undefined))
      throw new OctavoError("invalid_option", "--judge and --judge-model go together");
    const apiKey = keyOf("judge-key-env", judgeKeyEnv);
    const services =
      judge === undefined || judgeModel === undefined
        ? {}
        : {
            judge: openAiJudge({
              baseUrl: judge,
              model: judgeModel,
              ...(apiKey !== undefined && { apiKey }),
            }),
          };
    await interruptible(
      (signal) =>
        serveQueue(
          {
            redisUrl: redis,
            services,
            modules: evaluatorModule,
            concurrency,
            lockDurationMs: lockMs,
            stalledIntervalMs: Math.ceil(lockMs / 2),
            onReady: () => process.stderr.write("octavo: taking jobs\n"),
            ...(threads !== undefined && { threads }),
            ...(queue !== undefined && { queueName: queue }),
          },
          signal,
        ),
      () => process.stderr.write("octavo: finishing the jobs in progress\n"),
    );
  },
});
