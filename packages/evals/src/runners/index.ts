export * from "./runner.js";
export { concurrently } from "./concurrently.js";
export { ContentKeys } from "./content-key.js";
export { InProcessRunner, type InProcessOptions } from "./in-process.js";
export { WorkerThreadsRunner, type WorkerThreadsOptions } from "./worker-threads/worker-threads.js";
export { ScoreJournal } from "./journal.js";
