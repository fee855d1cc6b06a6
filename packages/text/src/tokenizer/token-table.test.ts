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

  it("finds what two tokens spell, and tokens with a text inside, as strings would", () => {
    const token = fc.option(
      fc.string({ unit: fc.constantFrom("a", "b", "\u2581", "\u{1f600}"), maxLength: 4 }),
      {
        nil: undefined,
      },
    );
    fc.assert(
      fc.property(fc.uniqueArray(token, { maxLength: 40 }), (tokens) => {
        const table = tableOf(tokens);
        for (const [first, left] of tokens.entries()) {
          for (const [second, right] of tokens.entries()) {
            if (left !== undefined && right !== undefined)
              assert.equal(table.findPair(first, second), tokens.indexOf(left + right));
          }
        }
        const inside = tokens.flatMap((text, id) => ((text ?? "").includes("\u2581", 1) ? [id] : []));
        assert.deepEqual([...new Set(table.idsWithInside("\u2581"))], inside);
      }),
    );
  });

  it("finds within bytes, and with one of them left out", () => {
    const table = tableOf(["ab", "a", "b", undefined, "é€", ""]);
    const text = Buffer.from("xa by é €");
    const joined = (from: string, likely: number): number => {
      const start = text.indexOf(from);
      return table.findJoined(text, start, text.indexOf(" ", start), start + Buffer.byteLength(from), likely);
    };
    assert.equal(table.find(text, 1, 2), 1);
    assert.equal(table.find(text, 1, 4), -1);
    for (const likely of [0, 1, 3, 5, 9, -1]) {
      assert.equal(joined("a b", likely), 0);
      assert.equal(joined("é €", likely), 4);
      assert.equal(joined("a by", likely), -1);
      assert.equal(joined("xa by é €", likely), -1, "longer than any token");
    }
    assert.equal(
      tableOf(["a", undefined]).find(text, 0, 0),
      -1,
      "an id without a token has none, not the empty one",
    );
  });

  it("takes lone surrogates for U+FFFD", () => {
    const table = tableOf(["\ud83d", "\ude00", "\ufffd"]);
    assert.deepEqual([...table.tokens()], ["\ufffd", "\ufffd", "\ufffd"]);
    assert.equal(table.idOf("\ude00"), 2);
    assert.equal(table.idOf("😀"), undefined);
    assert.equal(tableOf(["\ud83d\ude00", "\ufffd"]).idOf("😀"), 0);
  });

  it("knows no text that is longer than its tokens", () => {
    const table = tableOf(["ab", "Ġ", "é"]);
    for (const text of ["abc", "Ġa", "aĠ", "ĠĠ", "€", "a€", "😀"]) {
      assert.equal(table.idOf(text), undefined, text);
      assert.equal(table.idOf(text.repeat(1000)), undefined, text);
    }
    assert.deepEqual(
      ["ab", "Ġ", "é"].map((text) => table.idOf(text)),
      [0, 1, 2],
    );
    const long = tableOf(["€", "▁the", "a\uffff", "x😀€"]);
    assert.deepEqual(
      ["€", "▁the", "a\uffff", "x😀€"].map((text) => long.idOf(text)),
      [0, 1, 2, 3],
    );
    assert.equal(long.idOf("€€€€"), undefined);
    assert.equal(
      tableOf(["abcd", "zzzzzz"]).idOf("abcd😀"),
      undefined,
      "what fits of a text is not the text",
    );
    assert.equal(tableOf([]).idOf("a"), undefined);
  });

  it("says which token stands there twice, and finds the last", () => {
    assert.deepEqual(tableOf(["a", "b", "c", "b", "c"]).twice, [1, 3]);
    assert.equal(tableOf(["a", "b", "c", "b", "c"]).idOf("b"), 3);
    assert.equal(tableOf(["a", undefined, "b", undefined]).twice, undefined);
  });
});
