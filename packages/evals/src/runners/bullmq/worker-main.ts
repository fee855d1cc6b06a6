// A worker as a process of its own: takes jobs until it is told to stop, then finishes those it has.
import { once } from "node:events";
import { parseArgs } from "node:util";
import { OctavoError } from "@octavo/protocol";
import { runScript, wholeNumber, workerOptions, workerSetup, workerUsage } from "../worker-arguments.js";
import { WorkerThreadsRunner } from "../worker-threads/worker-threads.js";
import { BullMqWorker } from "./bullmq-worker.js";

const usage = `Scores pairs that a BullMqRunner puts on a queue.

  --redis URL              such as redis://127.0.0.1:6379
  --queue NAME             default octavo-evals
  --prefix NAME            in front of every key in Redis, default bull
  --lock-ms N              for how long a job is a worker's without being renewed (default 30000)
  --stalled-ms N           how often jobs of dead workers are looked for (default 15000)${workerUsage}
`;

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      redis: { type: "string" },
      queue: { type: "string" },
      prefix: { type: "string" },
      "lock-ms": { type: "string" },
      "stalled-ms": { type: "string" },
      help: { type: "boolean", default: false },
      ...workerOptions,
    },
  });
  if (values.help) {
    process.stdout.write(usage);
    return;
  }
  if (values.redis === undefined) throw new OctavoError("invalid_option", `--redis is needed\n\n${usage}`);
  const { table, services, modules, threads, concurrency } = await workerSetup(values);
  const lockDurationMs = wholeNumber("lock-ms", values["lock-ms"]);
  const stalledIntervalMs = wholeNumber("stalled-ms", values["stalled-ms"]);
  const runner = new WorkerThreadsRunner({ modules, ...(threads !== undefined && { threads }) });
  const worker = await BullMqWorker.start({
    redisUrl: values.redis,
    table,
    services,
    runner,
    ...(values.queue !== undefined && { queueName: values.queue }),
    ...(values.prefix !== undefined && { prefix: values.prefix }),
    ...(concurrency !== undefined && { concurrency }),
    ...(lockDurationMs !== undefined && { lockDurationMs }),
    ...(stalledIntervalMs !== undefined && { stalledIntervalMs }),
  });
  process.stdout.write("ready\n");
  await Promise.race([once(process, "SIGTERM"), once(process, "SIGINT")]);
  await worker.close();
  await runner.close();
}

await runScript(main);
