import { OctavoError } from "@octavo/protocol/errors";
import type { EmbeddingConfig } from "@octavo/artifacts/program/model-config";

/** What is put before a text to be embedded: the prompt of this name, else the model's default one, else nothing. */
export function promptOf(embedding: EmbeddingConfig | undefined, name: string | undefined): string {
  const { prompts = {}, defaultPrompt } = embedding ?? {};
  const wanted = name ?? defaultPrompt;
  if (wanted === undefined) return "";
  const prompt = Object.hasOwn(prompts, wanted) ? prompts[wanted] : undefined;
  if (prompt !== undefined) return prompt;
  const known = Object.keys(prompts).join(", ") || "none";
  throw new OctavoError(
    "invalid_request",
    `This model has no prompt ${JSON.stringify(wanted.slice(0, 100))}; it has: ${known}.`,
    { param: "prompt_name" },
  );
}
