import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createTokenizer } from "./create-tokenizer.js";
import { readTokenizerJson } from "./read/tokenizer-json.js";
import { fixtureNames, hostileTexts, plainConfig, readFixture } from "./testing/contenders.js";
import { maxTextPerToken } from "./text-per-token.js";

function boundOf(json: unknown): number {
  const { specification, table } = readTokenizerJson(json, plainConfig);
  return maxTextPerToken(specification, table);
}

describe("maxTextPerToken", () => {
  it("is never less than what a token stands for", () => {
    const finite: string[] = [];
    for (const name of fixtureNames) {
      const json: unknown = JSON.parse(readFixture(name));
      const bound = boundOf(json);
      const tokenizer = createTokenizer({ kind: "tokenizer.json", json, config: plainConfig });
      const longest = Array.from({ length: tokenizer.vocabSize }, (_, id) => tokenizer.decode([id])).reduce(
        (best, token) => (token.length > best.length ? token : best),
        "",
      );
      if (bound === Infinity) continue;
      finite.push(name);
      for (const text of [...hostileTexts, longest.repeat(20), "\u03c9\u0313\u0342\u0345".repeat(50)]) {
        const { length } = tokenizer.encode(text, { addSpecialTokens: false });
        assert.ok(length * bound >= text.length, `${name}: ${length} tokens for ${text.length} units`);
      }
    }
    assert.ok(["gpt2", "qwen2", "llama3", "o200k", "deepseek"].every((name) => finite.includes(name)));
  });

  it("is infinite where text can vanish or be joined without bound", () => {
    const model = { type: "BPE", vocab: { "<unk>": 0, a: 1 }, merges: [] };
    assert.equal(boundOf({ model: { ...model, unk_token: "<unk>" } }), 5);
    assert.equal(boundOf({ model }), Infinity);
    assert.equal(boundOf({ model: { ...model, unk_token: "<unk>", fuse_unk: true } }), Infinity);
    const known = { ...model, unk_token: "<unk>" };
    for (const normalizer of [
      { type: "Strip", strip_left: true, strip_right: true },
      { type: "StripAccents" },
      { type: "Replace", pattern: { String: "b" }, content: "" },
    ])
      assert.equal(boundOf({ model: known, normalizer }), Infinity, normalizer.type);
    assert.equal(boundOf({ model: known, pre_tokenizer: { type: "WhitespaceSplit" } }), Infinity);
    const added_tokens = [{ id: 2, content: "<x>", special: true, lstrip: true, rstrip: false }];
    assert.equal(boundOf({ model: known, added_tokens }), Infinity);
  });
});
