import assert from "node:assert/strict";
import { test } from "node:test";
import { parseSpeculativeConfig, type SpeculativeFlags, speculativeConfigOf } from "./speculative-config.js";

test("vLLM's JSON becomes the engine's configuration", () => {
  const cases: [object, object][] = [
    [
      { method: "ngram", num_speculative_tokens: 5, prompt_lookup_max: 4, prompt_lookup_min: 2 },
      { method: "ngram", numSpeculativeTokens: 5, promptLookupMax: 4, promptLookupMin: 2 },
    ],
    [
      { model: "[ngram]", num_speculative_tokens: 3 },
      { method: "ngram", numSpeculativeTokens: 3 },
    ],
    [{ method: "suffix" }, { method: "suffix" }],
    [
      {
        method: "suffix",
        num_speculative_tokens: 32,
        suffix_decoding_max_tree_depth: 64,
        suffix_decoding_max_cached_requests: 0,
        suffix_decoding_max_spec_factor: 2.5,
        suffix_decoding_min_token_prob: 0.2,
      },
      {
        method: "suffix",
        numSpeculativeTokens: 32,
        suffixDecodingMaxTreeDepth: 64,
        suffixDecodingMaxCachedRequests: 0,
        suffixDecodingMaxSpecFactor: 2.5,
        suffixDecodingMinTokenProb: 0.2,
      },
    ],
    [
      { model: "org/small", num_speculative_tokens: 4, draft_tensor_parallel_size: 1, quantization: null },
      { method: "draft_model", model: "org/small", numSpeculativeTokens: 4 },
    ],
    [
      { method: "draft_model", model: "org/small", revision: "v1" },
      { method: "draft_model", model: "org/small", revision: "v1" },
    ],
  ];
  for (const [given, expected] of cases)
    assert.deepEqual(parseSpeculativeConfig(JSON.stringify(given)), expected);
});

test("what it cannot mean is refused by name", () => {
  const cases: [string, RegExp][] = [
    ["ngram", /expected a JSON object/],
    ["[]", /expected a JSON object/],
    ["{}", /needs `method`/],
    ['{"method": "eagle3", "model": "x"}', /not "eagle3", which vLLM has and Octavo has not/],
    ['{"method": "deepseek_mtp"}', /which vLLM has and Octavo has not/],
    ['{"method": 3}', /method must be ngram, suffix or draft_model, not 3\.$/],
    ['{"method": "ngram", "suffix_decoding_max_tree_depth": 3}', /ngram knows no field suffix_decoding/],
    ['{"method": "ngram", "model": "org/small"}', /ngram knows no field model/],
    ['{"method": "ngram", "num_speculative_tokens": "5"}', /num_speculative_tokens must be a number/],
    ['{"method": "draft_model"}', /draft_model needs `model`/],
    ['{"model": "a", "draft_tensor_parallel_size": 2}', /draft_tensor_parallel_size/],
    ['{"model": "a", "revision": 1}', /revision must be text/],
  ];
  for (const [text, message] of cases) assert.throws(() => parseSpeculativeConfig(text), { message }, text);
});

test("the older flags say the same", () => {
  assert.equal(speculativeConfigOf({}), undefined);
  assert.deepEqual(speculativeConfigOf({ speculativeModel: "org/small", numSpeculativeTokens: 4 }), {
    method: "draft_model",
    model: "org/small",
    numSpeculativeTokens: 4,
  });
  assert.deepEqual(speculativeConfigOf({ speculativeModel: "[ngram]", ngramPromptLookupMax: 4 }), {
    method: "ngram",
    numSpeculativeTokens: undefined,
    promptLookupMin: undefined,
    promptLookupMax: 4,
  });
  assert.deepEqual(speculativeConfigOf({ speculativeConfig: { method: "suffix" } }), { method: "suffix" });
  const contradictions: SpeculativeFlags[] = [
    { speculativeConfig: { method: "suffix" }, numSpeculativeTokens: 3 },
    { speculativeConfig: { method: "suffix" }, speculativeModel: "a" },
    { numSpeculativeTokens: 3 },
    { ngramPromptLookupMin: 3 },
    { speculativeModel: "org/small", ngramPromptLookupMax: 3 },
  ];
  for (const flags of contradictions)
    assert.throws(() => speculativeConfigOf(flags), { code: "invalid_option", param: "speculative_config" });
});
