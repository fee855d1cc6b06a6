import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { OctavoError } from "@octavo/protocol/errors";
import { readGgufHeader } from "./file.js";
import { GgufStrings } from "@octavo/text/files/gguf-strings";
import { createTokenizer } from "@octavo/text/tokenizer/create-tokenizer";
import {
  contenders,
  hostileTexts,
  plainConfig,
  readFixture,
  type FixtureName,
} from "@octavo/text/tokenizer/testing/contenders";
import type { Tokenizer } from "@octavo/text/tokenizer/tokenizer";

const texts = hostileTexts.filter((text) => text.length <= 400);
const folder = new URL("../../../text/fixtures/tokenizers/", import.meta.url);
/** By vocabulary, the ids llama.cpp gives for each hostile text; written by tools/oracle/tokenizers/run-llama-cpp.mjs. */
const expected = JSON.parse(readFileSync(new URL("gguf-ids.json", folder), "utf8")) as Record<
  string,
  number[][]
>;

function load(name: string): Tokenizer {
  const { metadata } = readGgufHeader(fileURLToPath(new URL(`${name}.gguf`, folder)));
  return createTokenizer({ kind: "gguf", metadata, config: plainConfig });
}

for (const [name, ids] of Object.entries(expected)) {
  describe(`the ${name} GGUF vocabulary, against llama.cpp`, () => {
    const tokenizer = load(name);

    it("gives the same ids for hostile texts", () => {
      assert.equal(ids.length, texts.length);
      for (const [index, text] of texts.entries()) {
        const actual = [...tokenizer.encode(text, { addSpecialTokens: false })];
        assert.deepEqual(actual, ids[index], `ids differ for ${JSON.stringify(text.slice(0, 200))}`);
      }
    });
  });
}

interface TokenizerJson {
  readonly added_tokens: readonly { readonly id: number; readonly content: string }[];
  readonly model: {
    readonly vocab: Readonly<Record<string, number>>;
    readonly merges: readonly (readonly [string, string])[];
  };
}

/** A tokenizer.json's vocabulary as a GGUF file's metadata. */
function asMetadata(
  name: FixtureName,
  pre: string,
  more: Readonly<Record<string, unknown>> = {},
): Map<string, unknown> {
  const { model, added_tokens: added } = JSON.parse(readFixture(name)) as TokenizerJson;
  const tokens: string[] = [];
  for (const [token, id] of Object.entries(model.vocab)) tokens[id] = token;
  const types = tokens.map(() => 1);
  for (const { id, content } of added) {
    tokens[id] = content;
    types[id] = 3;
  }
  return new Map<string, unknown>([
    ["tokenizer.ggml.model", "gpt2"],
    ["tokenizer.ggml.pre", pre],
    ["tokenizer.ggml.tokens", GgufStrings.of(tokens)],
    ["tokenizer.ggml.token_type", Int32Array.from(types)],
    ["tokenizer.ggml.merges", GgufStrings.of(model.merges.map((merge) => merge.join(" ")))],
    ...Object.entries(more).map(([key, value]) => [`tokenizer.ggml.${key}`, value] as const),
  ]);
}

describe("a GGUF vocabulary", () => {
  it("cuts text as the model's own tokenizer where llama.cpp rewrites the pattern", () => {
    const gguf = createTokenizer({
      kind: "gguf",
      metadata: asMetadata("o200k", "gpt-4o"),
      config: plainConfig,
    });
    const { ours } = contenders(readFixture("o200k"));
    for (const text of hostileTexts)
      assert.deepEqual(gguf.encode(text), ours.encode(text), JSON.stringify(text.slice(0, 200)));
  });

  it("adds the tokens that the file or its kind asks for", () => {
    const ids = (pre: string, more: Readonly<Record<string, unknown>>): number[] => [
      ...createTokenizer({
        kind: "gguf",
        metadata: asMetadata("llama3", pre, more),
        config: plainConfig,
      }).encode("a"),
    ];
    const ends = { bos_token_id: 701, eos_token_id: 702 };
    assert.deepEqual(ids("llama-bpe", ends), [701, 64]);
    assert.deepEqual(ids("llama-bpe", { ...ends, add_bos_token: false }), [64]);
    assert.deepEqual(ids("qwen2", ends), [64]);
    assert.deepEqual(ids("qwen2", { ...ends, add_bos_token: true, add_eos_token: true }), [701, 64, 702]);
    assert.deepEqual(ids("qwen2", { add_bos_token: true }), [64]);
    assert.deepEqual([...load("sentencepiece-bpe").encode("")], [1]);
    assert.equal([...load("sentencepiece-unigram").encode("a")].at(-1), 2);
  });

  it("refuses what it does not know or what is malformed", () => {
    const refused = (change: Readonly<Record<string, unknown>>, code: string, message: RegExp): void => {
      const metadata = asMetadata("gpt2", "gpt-2", change);
      assert.throws(
        () => createTokenizer({ kind: "gguf", metadata, config: plainConfig }),
        (error) => error instanceof OctavoError && error.code === code && message.test(error.message),
        JSON.stringify(Object.keys(change)),
      );
    };
    refused({ model: "rwkv" }, "artifact_unsupported", /bert, gpt2, llama and t5/);
    refused({ model: "bert" }, "artifact_invalid", /cls_token_id is missing/);
    refused({ model: undefined }, "artifact_unsupported", /missing/);
    refused({ pre: "no-such" }, "artifact_unsupported", /no-such/);
    refused({ pre: "constructor" }, "artifact_unsupported", /constructor/);
    refused({ tokens: undefined }, "artifact_invalid", /list of strings/);
    refused({ tokens: ["a"] }, "artifact_invalid", /list of strings/);
    refused({ tokens: GgufStrings.of(["a", "a"]), token_type: undefined }, "artifact_invalid", /twice/);
    refused({ token_type: Int32Array.of(1) }, "artifact_invalid", /at least 701 numbers/);
    refused({ merges: undefined }, "artifact_invalid", /merges/);
    refused({ merges: GgufStrings.of(["ab"]) }, "artifact_invalid", /no pair/);
    refused({ merges: GgufStrings.of(["a nosuchtoken"]) }, "artifact_invalid", /no "nosuchtoken"/);
    refused({ bos_token_id: 701 }, "artifact_invalid", /below 701/);
    refused({ bos_token_id: 1.5 }, "artifact_invalid", /below 701/);
    refused({ add_bos_token: 1 }, "artifact_invalid", /true or false/);
    refused({ model: "llama" }, "artifact_invalid", /scores/);
    refused({ model: "t5", scores: Float32Array.of(1) }, "artifact_invalid", /scores/);
    const scores = new Float32Array(701);
    refused(
      { model: "t5", scores, precompiled_charsmap: Uint8Array.of(255, 255, 255, 255, 0) },
      "artifact_invalid",
      /truncated/,
    );
    refused({ model: "t5", scores: scores.fill(NaN) }, "artifact_invalid", /not a number/);
  });
});
