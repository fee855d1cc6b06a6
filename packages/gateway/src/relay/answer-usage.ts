import { asNumber, asObject, asRecord, type JsonFields } from "@octavo/protocol";
import type { LedgerUsage } from "../exchange/ledger-entry.js";

/** Token counts of an answer or a chunk of chat, completions, embeddings, `/responses` or `/messages`; undefined without. */
export function usageOfAnswer(json: JsonFields): LedgerUsage | undefined {
  const usage = asObject(json["usage"]);
  if (usage === undefined) return undefined;
  const prompt = asNumber(usage["prompt_tokens"]);
  if (prompt !== undefined) {
    const details = asRecord(usage["prompt_tokens_details"]);
    return {
      promptTokens: prompt,
      // DeepSeek's name for it, where it is not OpenAI's
      cachedTokens: asNumber(details["cached_tokens"]) ?? asNumber(usage["prompt_cache_hit_tokens"]) ?? 0,
      completionTokens: asNumber(usage["completion_tokens"]) ?? 0,
    };
  }
  const input = asNumber(usage["input_tokens"]);
  if (input === undefined) return undefined;
  const read = asNumber(usage["cache_read_input_tokens"]);
  const written = asNumber(usage["cache_creation_input_tokens"]) ?? 0;
  return {
    // of `/messages` without, of `/responses` with what was cached
    promptTokens: input + (read ?? 0) + written,
    cachedTokens: read ?? asNumber(asRecord(usage["input_tokens_details"])["cached_tokens"]) ?? 0,
    completionTokens: asNumber(usage["output_tokens"]) ?? 0,
  };
}
