  forcedLogprobs,
  type ForcedAnswer,
  type ForcedLogprob,
  type ForcedQuestion,
export * from "./function-target.js";
export * from "./openai-target.js";
export * from "./target.js";
export {
} from "./forced-logprobs.js";
