export * from "./false-alarms.js";
export * from "../collecting/from-answer.js";
export * from "../collecting/from-headers.js";
export * from "./verdicts.js";
