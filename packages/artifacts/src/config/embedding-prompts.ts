import { join } from "node:path";
import { z } from "zod";
import { artifactInvalid } from "@octavo/text/files/artifact-file";
import { parseForm, readJsonFile } from "@octavo/text/files/bounded-json";
import type { EmbeddingConfig } from "../program/model-config.js";

const maxBytes = 1024 * 1024;
const promptsSchema = z.looseObject({
  prompts: z.record(z.string().max(100), z.string().max(65_536)).nullish(),
  default_prompt_name: z.string().nullish(),
});

/** `config_sentence_transformers.json`: what is put before texts, by their use. */
export function readTextPrompts(folder: string): Pick<EmbeddingConfig, "prompts" | "defaultPrompt"> {
  const path = join(folder, "config_sentence_transformers.json");
  const { prompts, default_prompt_name: defaultPrompt } = parseForm(
    path,
    readJsonFile(path, maxBytes) ?? {},
    promptsSchema,
  );
  const named = prompts ?? {};
  if (defaultPrompt && !Object.hasOwn(named, defaultPrompt))
    throw artifactInvalid(
      path,
      `has the default prompt ${JSON.stringify(defaultPrompt.slice(0, 100))}, but no such prompt`,
    );
  return {
    ...(Object.keys(named).length > 0 && { prompts: named }),
    ...(defaultPrompt && { defaultPrompt }),
  };
}
