import { z } from "zod";
import { parseForm, readJsonFile } from "@octavo/text/files/bounded-json";
import type { GenerationDefaults } from "../checkpoint/checkpoint.js";
import { toIds } from "./config-json.js";
import { tokenIds } from "./config-schema.js";

const schema = z.looseObject({
  temperature: z.number().nonnegative().nullish(),
  top_p: z.number().min(0).max(1).nullish(),
  top_k: z.number().int().nullish(),
  min_p: z.number().min(0).max(1).nullish(),
  repetition_penalty: z.number().positive().nullish(),
  max_new_tokens: z.number().int().positive().nullish(),
  eos_token_id: tokenIds.nullish(),
});

interface GenerationConfig {
  readonly defaults: GenerationDefaults;
  readonly eosTokenIds: readonly number[];
}

/** generation_config.json, as vLLM takes it: sampling values count whatever `do_sample` says. No file means no defaults. */
export function readGenerationConfig(path: string): GenerationConfig {
  const json = readJsonFile(path, 1024 * 1024);
  if (json === undefined) return { defaults: {}, eosTokenIds: [] };
  const form = parseForm(path, json, schema);
  const { temperature, top_p: topP, top_k: topK, min_p: minP } = form;
  const { repetition_penalty: repetitionPenalty, max_new_tokens: maxNewTokens } = form;
  return {
    defaults: {
      ...(typeof temperature === "number" && { temperature }),
      ...(typeof topP === "number" && { topP }),
      ...(typeof topK === "number" && { topK }),
      ...(typeof minP === "number" && { minP }),
      ...(typeof repetitionPenalty === "number" && { repetitionPenalty }),
      ...(typeof maxNewTokens === "number" && { maxNewTokens }),
    },
    eosTokenIds: toIds(form.eos_token_id),
  };
}
