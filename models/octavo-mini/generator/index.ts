export { type CaseRequest, cases } from "./families.js";
export { notInPassage } from "./grounded.js";
export { notFound } from "./retrieval.js";
export type { Split } from "./split.js";
export * from "./task.js";
export { noToolAnswer } from "./tool-calls/tool-calls.js";
