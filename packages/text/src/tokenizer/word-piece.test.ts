import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { createTokenizer } from "./create-tokenizer.js";
import { joinPair } from "./join-pair.js";
import { plainConfig, readFixture } from "./testing/contenders.js";
import type { TokenPair } from "./tokenizer.js";

/** What Hugging Face's tokenizers gives; written by tools/oracle/tokenizers/make_fixtures.py. */
interface PairFixture {
  readonly first: string;
  readonly second: string;
  readonly ids: readonly number[];
  readonly joined: readonly [ids: number[], types: number[]];
  readonly most: number;
  readonly cut: readonly [ids: number[], types: number[]];
  readonly decoded: string;
}

const fixtures = JSON.parse(
  readFileSync(new URL("../../fixtures/tokenizers/bert-pairs.json", import.meta.url), "utf8"),
) as Record<"bert-uncased" | "bert-cased", readonly PairFixture[]>;

function idsAndTypes({ tokens, secondFrom = tokens.length }: TokenPair): [number[], number[]] {
  return [[...tokens], Array.from(tokens, (_, at) => (at < secondFrom ? 0 : 1))];
}

for (const name of ["bert-uncased", "bert-cased"] as const) {
  describe(`the ${name} tokenizer`, () => {
    const json = JSON.parse(readFixture(name)) as Record<string, unknown>;
    const tokenizer = createTokenizer({ kind: "tokenizer.json", json, config: plainConfig });

    it("gives the reference's ids, pairs, cut pairs and texts", () => {
      for (const { first, second, ids, joined, most, cut, decoded } of fixtures[name]) {
        assert.deepEqual([...tokenizer.encode(first)], ids, JSON.stringify(first));
        const plain = [first, second].map((text) => tokenizer.encode(text, { addSpecialTokens: false }));
        const [a, b] = plain as [Int32Array, Int32Array];
        assert.deepEqual(idsAndTypes(tokenizer.joinPair(a, b)), joined);
        assert.deepEqual(idsAndTypes(tokenizer.joinPair(a, b, most)), cut);
        assert.equal(tokenizer.decode(ids), decoded);
      }
    });

    it("takes files without a type, and refuses an unknown token that the vocabulary lacks", () => {
      const { type: _type, ...model } = json["model"] as Record<string, unknown>;
      const untyped = createTokenizer({
        kind: "tokenizer.json",
        json: { ...json, model },
        config: plainConfig,
      });
      assert.deepEqual(untyped.encode("the end"), tokenizer.encode("the end"));
      const broken = { ...json, model: { ...model, unk_token: "[WHAT]" } };
      assert.throws(() => createTokenizer({ kind: "tokenizer.json", json: broken, config: plainConfig }), {
        code: "artifact_invalid",
        message: /unk_token/,
      });
    });
  });
}

it("texts cannot be joined where the file's template of pairs is not known", () => {
  assert.throws(() => joinPair(undefined, Int32Array.of(1), Int32Array.of(2)), {
    code: "artifact_unsupported",
  });
});
