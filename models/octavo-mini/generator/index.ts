export { type CaseRequest, cases, families } from "./families.js";
export { notInPassage } from "./grounded.js";
export { notFound } from "./retrieval.js";
export * from "./task.js";
export { noToolAnswer } from "./tool-calls/tool-calls.js";
