import assert from "node:assert/strict";
import { test } from "node:test";
import { resolveSpeculativeConfig, type SpeculativeConfig } from "./speculative-config.js";

test("takes vLLM's defaults", () => {
  assert.deepEqual(resolveSpeculativeConfig({ method: "ngram" }), {
    method: "ngram",
    numSpeculativeTokens: 5,
    promptLookupMin: 5,
    promptLookupMax: 5,
  });
  const lookup = (config: Partial<SpeculativeConfig & { method: "ngram" }>): number[] => {
    const resolved = resolveSpeculativeConfig({ method: "ngram", ...config });
    return resolved.method === "ngram" ? [resolved.promptLookupMin, resolved.promptLookupMax] : [];
  };
  assert.deepEqual(lookup({ promptLookupMax: 4 }), [4, 4]);
  assert.deepEqual(lookup({ promptLookupMin: 2 }), [2, 2]);
  assert.deepEqual(lookup({ promptLookupMin: 2, promptLookupMax: 4 }), [2, 4]);
  assert.deepEqual(resolveSpeculativeConfig({ method: "suffix" }), {
    method: "suffix",
    numSpeculativeTokens: 24,
    suffixDecodingMaxTreeDepth: 24,
    suffixDecodingMaxCachedRequests: 10_000,
    suffixDecodingMaxSpecFactor: 1,
    suffixDecodingMinTokenProb: 0.1,
  });
  assert.deepEqual(resolveSpeculativeConfig({ method: "draft_model", model: "small" }), {
    method: "draft_model",
    model: "small",
    numSpeculativeTokens: 5,
  });
});

test("refuses what cannot be, by the field's name", () => {
  const cases: [unknown, RegExp][] = [
    [{ method: "eagle" }, /method must be one of ngram, suffix, draft_model, eagle3, mtp, not "eagle"/],
    [{}, /method must be one of/],
    [{ method: "ngram", numSpeculativeTokens: 0 }, /num_speculative_tokens must be an integer from 1 to 128/],
    [{ method: "ngram", numSpeculativeTokens: 129 }, /num_speculative_tokens/],
    [{ method: "ngram", numSpeculativeTokens: 1.5 }, /num_speculative_tokens/],
    [{ method: "ngram", promptLookupMin: 0 }, /prompt_lookup_m/],
    [
      { method: "ngram", promptLookupMin: 5, promptLookupMax: 4 },
      /prompt_lookup_min is 5, more than prompt_lookup_max, which is 4/,
    ],
    [{ method: "suffix", suffixDecodingMaxTreeDepth: 0 }, /suffix_decoding_max_tree_depth/],
    [{ method: "suffix", suffixDecodingMaxCachedRequests: -1 }, /suffix_decoding_max_cached_requests/],
    [{ method: "suffix", suffixDecodingMaxSpecFactor: Number.NaN }, /suffix_decoding_max_spec_factor/],
    [{ method: "suffix", suffixDecodingMinTokenProb: 1.1 }, /suffix_decoding_min_token_prob/],
    [{ method: "draft_model", model: "" }, /model must name the draft model/],
    [{ method: "eagle3", model: "" }, /model must name the EAGLE-3 head/],
    [{ method: "mtp", numSpeculativeTokens: 0 }, /num_speculative_tokens/],
    [{ method: "draft_model", model: "a", numSpeculativeTokens: Number.NaN }, /num_speculative_tokens/],
  ];
  for (const [config, message] of cases)
    assert.throws(() => resolveSpeculativeConfig(config as SpeculativeConfig), {
      code: "invalid_option",
      param: "speculative_config",
      message,
    });
});
