import assert from "node:assert/strict";
import { test } from "node:test";
import {
  adapterSpec,
  imageLimit,
  imagePixels,
  speculativeConfig,
  weightCorruption,
} from "./option-values.js";

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
      { method: "eagle3", model: "org/head", num_speculative_tokens: 3 },
      { method: "eagle3", model: "org/head", numSpeculativeTokens: 3 },
    ],
    [
      { method: "deepseek_mtp", num_speculative_tokens: 2 },
      { method: "mtp", numSpeculativeTokens: 2 },
    ],
    [
      { method: "draft_model", model: "org/small", revision: "v1" },
      { method: "draft_model", model: "org/small", revision: "v1" },
    ],
  ];
  for (const [given, expected] of cases)
    assert.deepEqual(speculativeConfig.parse(JSON.stringify(given), undefined), expected);
});

test("what vLLM's JSON cannot mean here is refused by name", () => {
  const cases: [string, RegExp][] = [
    ["ngram", /expected a JSON object/],
    ["[]", /expected a JSON object/],
    ["{}", /needs `method`/],
    ['{"method": "medusa", "model": "x"}', /not "medusa", which vLLM has and Octavo does not/],
    ['{"method": "ernie_mtp"}', /which vLLM has and Octavo does not/],
    ['{"method": 3}', /method must be ngram, suffix, draft_model, eagle3 or mtp, not 3$/],
    ['{"method": "eagle3"}', /eagle3 needs `model`/],
    ['{"method": "mtp", "model": "org/small"}', /mtp has no field model/],
    ['{"method": "ngram", "suffix_decoding_max_tree_depth": 3}', /ngram has no field suffix_decoding/],
    ['{"method": "ngram", "model": "org/small"}', /ngram has no field model/],
    ['{"method": "ngram", "num_speculative_tokens": "5"}', /num_speculative_tokens must be a number/],
    ['{"method": "draft_model"}', /draft_model needs `model`/],
    ['{"model": "a", "draft_tensor_parallel_size": 2}', /draft_tensor_parallel_size/],
    ['{"model": "a", "revision": 1}', /revision must be a string/],
  ];
  for (const [text, message] of cases)
    assert.throws(() => speculativeConfig.parse(text, undefined), { message }, text);
});

test("corruption is a seed, a size and perhaps a pattern, which may hold colons", () => {
  const parse = (text: string): object => weightCorruption.parse(text, undefined);
  assert.deepEqual(parse("1:0.05"), { seed: 1, scale: 0.05 });
  assert.deepEqual(parse("12:2e-3:*.mlp.*"), { seed: 12, scale: 0.002, pattern: "*.mlp.*" });
  assert.deepEqual(parse("1:1:a:b"), { seed: 1, scale: 1, pattern: "a:b" });
  for (const text of ["", "1", "1:", "-1:1", "1.5:1", "1:much", "1: ", "1:1:", ":1"])
    assert.throws(() => parse(text), /expected SEED:SCALE/, text);
});

test("adapters are NAME=PATH or vLLM's JSON", () => {
  const parse = (text: string): object => adapterSpec.parse(text, undefined);
  assert.deepEqual(parse("sql=/adapters/a=b"), { name: "sql", path: "/adapters/a=b" });
  assert.deepEqual(parse('{"name": "sql", "path": "org/sql", "base_model_name": "base"}'), {
    name: "sql",
    path: "org/sql",
    baseModelName: "base",
  });
  for (const text of ["sql", "=x", "{}", '{"name": "a", "path": "b", "rank": 8}'])
    assert.throws(() => parse(text), { code: "invalid_option" }, text);
});

test("limits of images as vLLM writes them, and as pairs", () => {
  for (const [text, count] of [
    ['{"image": 4}', 4],
    ['{"image": {"count": 2, "width": 512, "height": 512}}', 2],
    ['{"image": 0, "video": 0}', 0],
    ["image=3", 3],
  ] as const)
    assert.equal(imageLimit.parse(text, undefined), count);
  for (const text of [
    '{"video": 1, "image": 1}',
    '{"image": -1}',
    '{"image": 1.5}',
    "image=",
    "image=x",
    "{}",
  ])
    assert.throws(() => imageLimit.parse(text, undefined), { code: "invalid_option" }, text);
});

test("of an image processor, the most pixels of an image are taken as vLLM's flag has them", () => {
  assert.equal(imagePixels.parse('{"max_pixels": 1048576}', undefined), 1_048_576);
  for (const text of ["{}", '{"max_pixels": 0}', '{"max_pixels": 1.5}', '{"max_pixels": "1"}', "1048576"])
    assert.throws(() => imagePixels.parse(text, undefined), { code: "invalid_option" }, text);
  assert.throws(() => imagePixels.parse('{"max_pixels": 4096, "fps": 2}', undefined), {
    message: /fps cannot/,
  });
});
