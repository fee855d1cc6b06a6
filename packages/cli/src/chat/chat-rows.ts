import { option, type ResolvedOptions } from "@octavo/protocol/options";
import type { ChatFields } from "./ask-streaming.js";

/** What `octavo chat` and `octavo run` share. */
export const chatRows = {
  model: option.text("--model <name>", "of a server that serves several", {
    defaultText: "the first that it lists",
  }),
  apiKey: option.text("--api-key <key>", "key of the server", { environment: ["OCTAVO_API_KEY"] }),
  system: option.text("--system <text>", "what the model is told first"),
  maxTokens: option.integer("--max-tokens <n>", "most tokens of an answer", {
    min: 1,
    defaultText: "what fits",
  }),
  temperature: option.number("--temperature <t>", "0 takes the likeliest token", {
    min: 0,
    max: 2,
    defaultText: "the model's own, else 1",
  }),
  seed: option.integer("--seed <n>", "repeats an answer exactly", { min: 0 }),
  maxModelLen: option.integer("--max-model-len <tokens>", "context of a model loaded here", {
    min: 1,
    defaultText: "the model's own, as far as memory goes",
  }),
};

export function fieldsOf({ maxTokens, temperature, seed }: ResolvedOptions<typeof chatRows>): ChatFields {
  return {
    ...(maxTokens !== undefined && { max_tokens: maxTokens }),
    ...(temperature !== undefined && { temperature }),
    ...(seed !== undefined && { seed }),
  };
}
