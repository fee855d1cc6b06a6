export * from "./runner.js";
export { concurrently } from "./concurrently.js";
export { BullMqRunner, type BullMqRunnerOptions } from "./bullmq/bullmq-runner.js";
export { BullMqWorker, type BullMqWorkerOptions } from "./bullmq/bullmq-worker.js";
export type { BullMqConnection } from "./bullmq/connection.js";
export { ContentKeys } from "./content-key.js";
export { InProcessRunner, type InProcessOptions } from "./in-process.js";
export { WorkerThreadsRunner, type WorkerThreadsOptions } from "./worker-threads/worker-threads.js";
export { ScoreJournal } from "./journal.js";
