export * from "./judge.js";
export { OpenAiJudge, type OpenAiJudgeSettings, openAiJudge, selfJudgingWarning } from "./openai-judge.js";
