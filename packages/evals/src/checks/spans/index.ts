export * from "../from-spans.js";
export * from "./read-spans.js";
