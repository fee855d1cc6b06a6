import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "fast-check";
import { startTestServer } from "../testing/test-server.js";
import { jsonWithLists, jsonWithText } from "./json-pieces.js";

describe("JSON in pieces", () => {
  it("is the JSON of the whole", () => {
    const property = fc.property(
      fc.array(fc.jsonValue(), { maxLength: 5 }),
      fc.array(fc.integer(), { maxLength: 5 }),
      fc.dictionary(fc.constantFrom("x", "y"), fc.jsonValue()),
      (first, second, tail) => {
        const text = [...jsonWithLists({ id: 1 }, { first, second }, tail)].join("");
        assert.equal(text, JSON.stringify({ id: 1, first, second, ...tail }));
      },
    );
    fc.assert(property, { seed: 11, numRuns: 200 });
  });

  it("escapes text as the whole would be", () => {
    const property = fc.property(fc.array(fc.string({ unit: "grapheme" }), { maxLength: 6 }), (parts) => {
      assert.equal([...jsonWithText("prompt", parts)].join(""), JSON.stringify({ prompt: parts.join("") }));
    });
    fc.assert(property, { seed: 12, numRuns: 200 });
  });

  it("says the length of a short answer, and sends a long one while it is made", async () => {
    await using server = await startTestServer();
    const short = await server.post("/tokenize", { prompt: "abc" });
    assert.equal(short.headers.get("content-length"), String((await short.text()).length));
    const text = "añ€😀".repeat(20_000);
    const request = { prompt: text, add_special_tokens: false, return_token_strs: true };
    const long = await server.post("/tokenize", request);
    assert.equal(long.headers.get("content-length"), null);
    const { count, tokens, token_strs } = (await long.json()) as {
      count: number;
      tokens: number[];
      token_strs: string[];
    };
    assert.deepEqual([tokens.length, token_strs.length], [count, count]);
    const back = await server.post("/detokenize", { tokens });
    assert.ok(((await back.json()) as { prompt: string }).prompt === text, "the text comes back");
  });
});
