import { openAiJudge, serveQueue } from "@octavo/evals";
import { OctavoError } from "@octavo/protocol/errors";
import { option } from "@octavo/protocol/options";
import { defineCommand } from "../command.js";
import { judgeRows, keyOf, runnerRows } from "../eval/eval-rows.js";
import { interruptible } from "../interruptible.js";

/** `octavo eval worker`: scores what `octavo eval run --redis` puts on a queue. */
export const evalWorker = defineCommand({
  options: {
    redis: {
      flag: "redis",
      type: option.text("url"),
      isRequired: true,
      help: "where the queue is, such as redis://127.0.0.1:6379",
    },
    queue: { ...runnerRows.queue, group: "Options" },
    ...judgeRows,
    evaluatorModule: {
      flag: "evaluator-module",
      type: option.list(option.text("url")),
      default: [],
      help: "modules that export `evaluators`, rows of your own",
    },
    threads: {
      flag: "threads",
      type: option.integer({ min: 1 }),
      defaultText: "one for each core, at most 8",
      help: "threads that compute scores",
    },
    concurrency: {
      flag: "concurrency",
      type: option.integer({ min: 1, max: 4096 }),
      default: 16,
      help: "answers scored at the same time",
    },
    lockMs: {
      flag: "lock-ms",
      type: option.integer({ min: 1000 }, "ms"),
      default: 30_000,
      help: "milliseconds after which another worker takes over the jobs of one that died",
    },
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
