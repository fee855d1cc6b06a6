export * from "./false-alarms.js";
export * from "./from-answer.js";
export * from "./from-headers.js";
export * from "./verdicts.js";
