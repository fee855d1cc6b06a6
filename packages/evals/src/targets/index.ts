export * from "./function-target.js";
export * from "./openai-target.js";
export * from "./target.js";
