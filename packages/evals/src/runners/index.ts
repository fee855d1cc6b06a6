export * from "./runner.js";
export { concurrently } from "./concurrently.js";
export { ContentKeys } from "./content-key.js";
export { InProcessRunner, type InProcessOptions } from "./in-process.js";
export { ScoreJournal } from "./journal.js";
