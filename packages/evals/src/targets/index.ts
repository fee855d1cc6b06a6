export {
  forcedLogprobs,
  type ForcedAnswer,
  type ForcedLogprob,
  type ForcedQuestion,
} from "./forced-logprobs.js";
export { endWithProcess } from "./end-with-process.js";
export * from "./function-target.js";
export * from "./openai-target.js";
export * from "./replica-processes.js";
export * from "./target.js";
