import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "fast-check";
import { packVocabulary } from "./specification.js";
import { TokenTable } from "./token-table.js";

function tableOf(tokens: readonly (string | undefined)[]): TokenTable {
  return new TokenTable(packVocabulary(tokens));
}

describe("a table of tokens", () => {
  it("finds what a map finds", () => {
    const token = fc.option(fc.string({ unit: "binary", maxLength: 4 }), { nil: undefined });
    fc.assert(
      fc.property(
        fc.array(token, { maxLength: 60 }),
        fc.array(fc.string({ maxLength: 4 })),
        (tokens, others) => {
          const table = tableOf(tokens);
          const ids = new Map(tokens.map((text, id) => [text, id]));
          ids.delete(undefined);
          for (const text of [...ids.keys(), ...others]) {
            if (text !== undefined) assert.equal(table.idOf(text), ids.get(text));
          }
          assert.deepEqual(
            tokens.map((_, id) => table.token(id)),
            tokens,
          );
          assert.equal(table.token(tokens.length), undefined);
          assert.equal(table.size, tokens.length);
          assert.deepEqual(
            [...table.tokens()],
            tokens.filter((text) => text !== undefined),
          );
        },
      ),
    );
  });

  it("finds within a text, with a unit left out", () => {
    const table = tableOf(["ab", "a", "b", undefined, "é€"]);
    assert.equal(table.find("xa by", 1, 4, 2), 0);
    assert.equal(table.find("xa by", 1, 4), -1);
    assert.equal(table.find("xa by", 3, 4), 2);
    assert.equal(table.find("é €", 0, 3, 1), 4);
    assert.ok(table.is(0, "a b", 0, 3, 1));
    assert.ok(!table.is(3, "", 0, 0, 0), "an id without a token has none, not the empty one");
    assert.ok(!table.is(9, "a", 0, 1, 1));
  });

  it("says which token stands there twice, and finds the last", () => {
    assert.deepEqual(tableOf(["a", "b", "c", "b", "c"]).twice, [1, 3]);
    assert.equal(tableOf(["a", "b", "c", "b", "c"]).idOf("b"), 3);
    assert.equal(tableOf(["a", undefined, "b", undefined]).twice, undefined);
  });
});
