import { OctavoError } from "@octavo/protocol/errors";
import { checkOptionNames } from "@octavo/protocol/options";
import type { ChatOptions, EmbedOptions, GenerateOptions } from "./call-options.js";

/** Every option, so that a misspelt one names itself; the types hold the lists to the interfaces. */
const generateNames: Readonly<Record<keyof GenerateOptions, true>> = {
  n: true,
  maxTokens: true,
  minTokens: true,
  temperature: true,
  topP: true,
  topK: true,
  minP: true,
  presencePenalty: true,
  frequencyPenalty: true,
  repetitionPenalty: true,
  logitBias: true,
  allowedTokenIds: true,
  badWords: true,
  stop: true,
  stopTokenIds: true,
  includeStopStrInOutput: true,
  ignoreEos: true,
  seed: true,
  logprobs: true,
  promptLogprobs: true,
  logprobTokenIds: true,
  skipSpecialTokens: true,
  signal: true,
  promptLogprobsFrom: true,
  cacheSalt: true,
  adapter: true,
  priority: true,
  account: true,
  deadlines: true,
  requestId: true,
  constraint: true,
  addSpecialTokens: true,
};

const { addSpecialTokens: _, ...shared } = generateNames;
const chatNames: Readonly<Record<keyof ChatOptions, true>> = {
  ...shared,
  tools: true,
  toolChoice: true,
  parallelToolCalls: true,
  maxRounds: true,
  thinkingBudget: true,
  documents: true,
  addGenerationPrompt: true,
  continueFinalMessage: true,
  variables: true,
};

const embedNames: Readonly<Record<keyof EmbedOptions, true>> = {
  pooling: true,
  promptName: true,
  normalize: true,
  adapter: true,
  signal: true,
};

/** The part of a chat's options that any generation takes. */
export function generateOptionsOf(options: ChatOptions): GenerateOptions {
  return Object.fromEntries(Object.entries(options).filter(([name]) => name in shared));
}

const namesOf = { generate: generateNames, chat: chatNames, embed: embedNames };

const constraintKinds = [
  "json_schema",
  "schema_text",
  "json_object",
  "regex",
  "choice",
  "grammar",
  "literal",
  "any_text",
  "sequence",
  "any_of",
  "repeat",
  "tagged_text",
];

/** Throws `invalid_option` for an option that there is not, and for a constraint of no kind. */
export function checkCallOptions(method: keyof typeof namesOf, options: object): void {
  checkOptionNames(options, Object.keys(namesOf[method]), `llm.${method}`);
  const constraint: unknown = "constraint" in options ? options.constraint : undefined;
  if (constraint === undefined) return;
  const kind =
    typeof constraint === "object" && constraint !== null && "kind" in constraint
      ? constraint.kind
      : undefined;
  if (typeof kind === "string" && constraintKinds.includes(kind)) return;
  const instead =
    typeof constraint === "object" && constraint !== null && "type" in constraint
      ? "; it is called kind, not type"
      : "";
  throw new OctavoError(
    "invalid_option",
    `constraint.kind: expected one of ${constraintKinds.join(", ")}${instead}`,
    {
      param: "constraint.kind",
    },
  );
}
