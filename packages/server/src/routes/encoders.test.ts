import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, it } from "node:test";
import { readEmbeddingFixtures, readRerankerFixtures } from "@octavo/artifacts/testing/model-fixtures";
import type { ClassificationList, EmbeddingList, RerankList, ScoreList } from "@octavo/protocol";
import { startEncoder } from "../testing/encoder-server.js";

interface Refusal {
  readonly error: { readonly message: string; readonly param: string | null; readonly code: unknown };
}

const rerankers = readRerankerFixtures();
const encoders = readEmbeddingFixtures().filter(
  ({ prompted, name }) => prompted !== undefined || name === "bert",
);
const near = (actual: number, expected: number, what: string): void =>
  assert.ok(
    Math.abs(actual - expected) <= 2e-5 * Math.max(1, Math.abs(expected)),
    `${what}: ${actual}, not ${expected}`,
  );
const sigmoid = (score: number): number => 1 / (1 + Math.exp(-score));

function pathOf(name: string): string {
  return [...rerankers, ...readEmbeddingFixtures()].find((fixture) => fixture.name === name)?.path ?? "";
}

describe("rerankers, as sentence-transformers' CrossEncoder scores", () => {
  for (const { name, path, scoreBy, pairs, ids, scores, logits } of rerankers.filter(
    ({ scores: given }) => given,
  )) {
    it(name, async () => {
      await using server = await startEncoder(path, { scoreBy });
      const [query = ""] = pairs[0] ?? [];
      const own = pairs.flatMap(([left, right], index) => (left === query ? [{ right, index }] : []));
      const documents = own.map(({ right }) => right);
      const ranked = (await (await server.post("/v2/rerank", { query, documents })).json()) as RerankList;
      const expected = own.map(({ index }) => scores?.[index] ?? Number.NaN);
      assert.deepEqual(
        ranked.results.map(({ index }) => index),
        expected.map((_, index) => index).toSorted((a, b) => (expected[b] ?? 0) - (expected[a] ?? 0)),
      );
      for (const { index, relevance_score: score, document } of ranked.results) {
        near(score, expected[index] ?? Number.NaN, `document ${index}`);
        assert.equal(document?.text, documents[index]);
      }
      const numTokens = own.reduce((sum, { index }) => sum + (ids[index]?.length ?? 0), 0);
      assert.deepEqual(ranked.usage, { prompt_tokens: numTokens, total_tokens: numTokens });

      const [lefts, rights] = [pairs.map(([left]) => left), pairs.map(([, right]) => right)];
      const raw = { text_1: lefts, text_2: rights, use_activation: false };
      const scored = (await (await server.post("/v1/score", raw)).json()) as ScoreList;
      for (const { index, score } of scored.data)
        near(score, logits[index]?.[0] ?? Number.NaN, `pair ${index}`);
      for (const { index, right } of own) {
        const alone = { text_1: query, text_2: right, use_activation: false };
        const { data } = (await (await server.post("/score", alone)).json()) as ScoreList;
        assert.equal(data[0]?.score, scored.data[index]?.score, "the same bits alone");
      }
    });
  }

  it("cuts pairs that are too long only when asked to, and says which are", async () => {
    await using server = await startEncoder(pathOf("bert-cross"));
    const long = Array.from({ length: 200 }, () => "cat").join(" ");
    const body = { query: "the cat", documents: ["the dog", long] };
    const refused = await server.post("/rerank", body);
    assert.equal(refused.status, 400);
    assert.match(((await refused.json()) as Refusal).error.message, /documents\[1\].* 128/);
    const cut = await server.post("/rerank", { ...body, truncate_prompt_tokens: -1 });
    assert.equal(cut.status, 200);
    const { usage } = (await cut.json()) as RerankList;
    assert.ok(usage.prompt_tokens > 128 && usage.prompt_tokens < 2 * 128);
    const left = { ...body, truncate_prompt_tokens: 16, truncation_side: "left" };
    assert.match(
      ((await (await server.post("/rerank", left)).json()) as Refusal).error.message,
      /only right/,
    );
  });
});

describe("scores by yes or no", () => {
  it("cut documents' ends alone, and no more than there is", async () => {
    await using server = await startEncoder(pathOf("qwen3-yes-no"), { scoreBy: "yes-no" });
    const body = { query: "the cat", documents: ["the dog", "the cat ".repeat(400)] };
    const refused = await server.post("/rerank", body);
    assert.equal(refused.status, 400);
    assert.match(((await refused.json()) as Refusal).error.message, /documents\[1\].* 1024/);
    const cut = await server.post("/rerank", { ...body, truncate_prompt_tokens: 300 });
    const { results, usage } = (await cut.json()) as RerankList;
    assert.equal(results.length, 2);
    assert.ok(usage.prompt_tokens > 300 && usage.prompt_tokens <= 600);
    const none = await server.post("/rerank", { ...body, truncate_prompt_tokens: 20 });
    const { error } = (await none.json()) as Refusal;
    assert.deepEqual([none.status, error.param], [400, "truncate_prompt_tokens"]);
  });

  it("are for models that were trained to say them", async () => {
    const problems = { "bert-cross": /is a Bert/, "qwen3-cross": /has a head that scores/ };
    for (const [name, message] of Object.entries(problems)) {
      await assert.rejects(startEncoder(pathOf(name), { scoreBy: "yes-no" }), {
        code: "invalid_option",
        param: "score_by",
        message,
      });
    }
    const wordless = join(pathOf("qwen3-cross"), "../../models/checkpoints/qwen3");
    await assert.rejects(startEncoder(wordless, { scoreBy: "yes-no" }), { message: /lacks the token "yes"/ });
  });
});

describe("classification", () => {
  it("gives each text its labels' probabilities", async () => {
    await using server = await startEncoder(pathOf("modernbert-labels"));
    const { texts = [], textLogits = [] } = rerankers.find(({ name }) => name === "modernbert-labels") ?? {};
    const answer = (await (await server.post("/classify", { input: texts })).json()) as ClassificationList;
    for (const { index, probs, label, num_classes: count } of answer.data) {
      const powers = (textLogits[index] ?? []).map(Math.exp);
      const total = powers.reduce((sum, power) => sum + power, 0);
      for (const [column, power] of powers.entries())
        near(probs[column] ?? 0, power / total, `text ${index}`);
      assert.equal(label, ["no", "maybe", "yes"][powers.indexOf(Math.max(...powers))]);
      assert.equal(count, 3);
    }
    const raw = { input: texts[0], use_activation: false };
    const [first] = ((await (await server.post("/v1/classify", raw)).json()) as ClassificationList).data;
    near(first?.probs[2] ?? 0, textLogits[0]?.[2] ?? Number.NaN, "a score");
    const pair = await server.post("/score", { text_1: "a", text_2: "b" });
    assert.match(((await pair.json()) as Refusal).error.message, /3 labels.*\/classify/);
    for (const [path, body, message] of [
      ["/v1/embeddings", { input: "a" }, /gives no embeddings; use \/classify/],
      [
        "/v1/chat/completions",
        { messages: [{ role: "user", content: "a" }] },
        /gives no text: use \/classify/,
      ],
    ] as const) {
      const refused = await server.post(path, body);
      const { error } = (await refused.json()) as Refusal;
      assert.deepEqual([refused.status, error.param], [400, "model"]);
      assert.match(error.message, message);
    }
  });

  it("of one label is a sigmoid", async () => {
    await using server = await startEncoder(pathOf("bert-cross"));
    const { texts = [], textLogits = [] } = rerankers.find(({ name }) => name === "bert-cross") ?? {};
    const answer = (await (await server.post("/classify", { input: texts })).json()) as ClassificationList;
    for (const { index, probs } of answer.data)
      near(probs[0] ?? 0, sigmoid(textLogits[index]?.[0] ?? 0), `text ${index}`);
  });
});

describe("encoders", () => {
  for (const { name, path, texts, embeddings, prompted = {} } of encoders) {
    it(`${name}: embeddings of many texts at once, and with prompts`, async () => {
      await using server = await startEncoder(path);
      const ask = async (fields: object): Promise<readonly number[][]> => {
        const answer = (await (
          await server.post("/v1/embeddings", { input: texts, ...fields })
        ).json()) as EmbeddingList;
        return answer.data.map(({ embedding }) => embedding as number[]);
      };
      const compare = (actual: readonly number[][], expected: readonly (readonly number[])[]): void => {
        for (const [index, row] of expected.entries()) {
          for (const [column, value] of row.entries())
            near(actual[index]?.[column] ?? Number.NaN, value, `text ${index}`);
        }
      };
      compare(await ask({}), embeddings);
      for (const [prompt, expected] of Object.entries(prompted))
        compare(await ask({ prompt_name: prompt }), expected);
      const unknown = await server.post("/v1/embeddings", { input: "a", prompt_name: "tale" });
      const { error } = (await unknown.json()) as Refusal;
      assert.deepEqual([unknown.status, error.param], [400, "prompt_name"]);
    });
  }

  it("refuse text with a clear error on every endpoint that generates, and long inputs with the counts", async () => {
    await using server = await startEncoder(pathOf("bert"));
    const messages = [{ role: "user", content: "a" }];
    for (const [path, body] of [
      ["/v1/chat/completions", { messages }],
      ["/v1/completions", { prompt: "a" }],
      ["/v1/responses", { input: "a" }],
      ["/v1/messages", { messages, max_tokens: 4 }],
    ] as const) {
      const refused = await server.post(path, body);
      assert.equal(refused.status, 400, path);
      assert.match(((await refused.json()) as Refusal).error.message, /gives no text: use \/v1\/embeddings/);
    }
    const input = Array.from({ length: 200 }, () => "cat").join(" ");
    const long = await server.post("/v1/embeddings", { input });
    const { error } = (await long.json()) as Refusal;
    assert.equal(long.status, 400);
    assert.match(error.message, /context length.* 128/);
    const cut = await server.post("/v1/embeddings", {
      input,
      truncate_prompt_tokens: 128,
      truncation_side: "right",
    });
    assert.equal(cut.status, 200);
    const models = (await (await server.get("/v1/models")).json()) as { data: { max_model_len: number }[] };
    assert.equal(models.data[0]?.max_model_len, 128);
  });

  it("run many texts in few steps, none longer than a step", async () => {
    await using server = await startEncoder(pathOf("bert"), { maxNumBatchedTokens: 128 });
    const steps: number[] = [];
    using observer = server.llm.engine.observe({
      onStep: ({ prefillTokens }) => void steps.push(prefillTokens),
    });
    const input = Array.from({ length: 64 }, (_, index) =>
      `the cat ${index} and the dog`.repeat(1 + (index % 4)),
    );
    const answer = (await (await server.post("/v1/embeddings", { input })).json()) as EmbeddingList;
    assert.equal(answer.data.length, 64);
    assert.ok(steps.every((tokens) => tokens <= 128) && steps.length < 40, steps.join(" "));
    assert.ok(observer);
    assert.equal(server.llm.engine.stats.cachedBlocks, 0);
    assert.equal(server.llm.engine.stats.freeBlocks, server.llm.engine.stats.totalBlocks);
  });
});
