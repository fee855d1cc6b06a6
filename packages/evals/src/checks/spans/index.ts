export * from "./from-spans.js";
export * from "./gather-spans.js";
export * from "./read-spans.js";
