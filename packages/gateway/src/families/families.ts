import { anthropicFamily } from "./anthropic.js";
import { bedrockFamily } from "./bedrock.js";
import type { WireFamily } from "./family.js";
import { geminiFamily } from "./gemini.js";
import { azureFamily, openaiFamily } from "./openai.js";

/** Wire formats by name; providers name theirs. */
export const families = {
  openai: openaiFamily,
  azure: azureFamily,
  anthropic: anthropicFamily,
  gemini: geminiFamily,
  bedrock: bedrockFamily,
} as const satisfies Readonly<Record<string, WireFamily>>;

export type FamilyName = keyof typeof families;
