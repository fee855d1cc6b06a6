import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { RerankList, ScoreList } from "@octavo/protocol";
import { startTestServer } from "../testing/test-server.js";

/** A model whose vectors have the share of each of three letters as directions. */
async function letterServer() {
  const server = await startTestServer();
  const { engine, tokenizer } = server.model;
  engine.embed = (request) => {
    const text = tokenizer.decode(request.promptTokens);
    const counts = Float32Array.from(["a", "b", "c"], (letter) => text.split(letter).length - 1);
    const length = Math.hypot(...counts) || 1;
    const usage = { promptTokens: request.promptTokens.length, completionTokens: 0, cachedTokens: 0 };
    return Promise.resolve({ embedding: counts.map((count) => count / length), usage });
  };
  return server;
}

describe("scores", () => {
  it("are cosines of one text with many, or of pairs", async () => {
    await using server = await letterServer();
    const one = (await (
      await server.post("/score", { text_1: "a", text_2: ["aa", "b", "ab"] })
    ).json()) as ScoreList;
    assert.deepEqual(
      one.data.map(({ index, object, score }) => [index, object, Math.round(score * 1000)]),
      [
        [0, "score", 1000],
        [1, "score", 0],
        [2, "score", 707],
      ],
    );
    // four texts, each with the token that begins a text
    assert.deepEqual(one.usage, { prompt_tokens: 10, total_tokens: 10 });
    const pairs = (await (
      await server.post("/v1/score", { text_1: ["a", "b"], text_2: ["a", "a"] })
    ).json()) as ScoreList;
    assert.deepEqual(
      pairs.data.map(({ score }) => Math.round(score)),
      [1, 0],
    );
  });

  it("need as many texts on both sides", async () => {
    await using server = await letterServer();
    const refused = await server.post("/score", { text_1: ["a", "b"], text_2: "a" });
    assert.equal(refused.status, 400);
    assert.match(await refused.text(), /text_1: has 2 texts and text_2 1/);
    assert.equal((await server.post("/score", { text_1: "", text_2: "a" })).status, 400);
  });
});

describe("reranking", () => {
  it("puts the best document first", async () => {
    await using server = await letterServer();
    const body = { query: "ab", documents: ["c", { text: "b" }, "ba"] };
    for (const path of ["/rerank", "/v1/rerank", "/v2/rerank"]) {
      const { results } = (await (await server.post(path, body)).json()) as RerankList;
      assert.deepEqual(
        results.map(({ index, document }) => [index, document?.text]),
        [
          [2, "ba"],
          [1, "b"],
          [0, "c"],
        ],
      );
    }
    const short = { ...body, top_n: 1, return_documents: false };
    const { results } = (await (await server.post("/rerank", short)).json()) as RerankList;
    assert.equal(results.length, 1);
    assert.deepEqual(Object.keys(results[0] ?? {}), ["index", "relevance_score"]);
  });
});
