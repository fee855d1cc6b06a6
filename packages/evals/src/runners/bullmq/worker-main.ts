// A worker as a process of its own: takes jobs until it is told to stop, then finishes those it has.
import { parseArgs } from "node:util";
import { definedFields, OctavoError } from "@octavo/protocol";
import { runScript, wholeNumber, workerOptions, workerSetup, workerUsage } from "../worker-arguments.js";
import { serveQueue } from "./serve-queue.js";

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
  const { services, modules, threads, concurrency } = workerSetup(values);
  const lockDurationMs = wholeNumber("lock-ms", values["lock-ms"]);
  const stalledIntervalMs = wholeNumber("stalled-ms", values["stalled-ms"]);
  const stop = new AbortController();
  for (const name of ["SIGTERM", "SIGINT"] as const) process.once(name, () => stop.abort());
  await serveQueue(
    {
      redisUrl: values.redis,
      services,
      modules,
      onReady: () => process.stdout.write("ready\n"),
      ...definedFields({
        threads,
        queueName: values.queue,
        prefix: values.prefix,
        concurrency,
        lockDurationMs,
        stalledIntervalMs,
      }),
    },
    stop.signal,
  );
}

await runScript(main);
