import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { BadRequestError, NotFoundError } from "openai";
import { startTestServer } from "../testing/test-server.js";

const model = "fake/model";

describe("embeddings", () => {
  it("come as floats and as base64, equal", async () => {
    await using server = await startTestServer();
    const floats = await server.client.embeddings.create({
      model,
      input: ["a", "bc"],
      encoding_format: "float",
    });
    // without a format the openai package asks for base64 and decodes it
    const decoded = await server.client.embeddings.create({ model, input: ["a", "bc"] });
    assert.deepEqual(
      floats.data.map((item) => item.embedding),
      decoded.data.map((item) => Array.from(item.embedding)),
    );
    assert.deepEqual(
      floats.data.map((item) => item.index),
      [0, 1],
    );
    assert.equal(floats.data[0]?.embedding.length, 8);
    assert.deepEqual(floats.usage.total_tokens, 5);
  });

  it("take ids and pass pooling on", async () => {
    await using server = await startTestServer({ pooling: "mean" });
    await server.client.embeddings.create({ model, input: [[1, 2], [3]] });
    assert.deepEqual(
      server.model.engine.embeddings.map(({ promptTokens, pooling, normalize }) => [
        Array.from(promptTokens),
        pooling,
        normalize,
      ]),
      [
        [[1, 2], "mean", true],
        [[3], "mean", true],
      ],
    );
  });

  it("refuse other dimensions, too long and empty inputs", async () => {
    await using server = await startTestServer({}, { maxModelLen: 8 });
    const refused = server.client.embeddings.create({ model, input: "a", dimensions: 4 });
    await assert.rejects(
      refused,
      (error: unknown) => error instanceof BadRequestError && error.param === "dimensions",
    );
    assert.equal(
      (await server.client.embeddings.create({ model, input: "a", dimensions: 8 })).data.length,
      1,
    );
    await assert.rejects(
      server.client.embeddings.create({ model, input: ["a", "b".repeat(20)] }),
      /input\[1\]: the input has 21 tokens/,
    );
    assert.equal((await server.post("/v1/embeddings", { input: [[]] })).status, 400);
  });
});

describe("models", () => {
  it("lists every served name and answers with the first", async () => {
    await using server = await startTestServer({ servedModelNames: ["main", "alias/with/slash"] });
    const list = await server.client.models.list();
    assert.deepEqual(
      list.data.map((card) => card.id),
      ["main", "alias/with/slash"],
    );
    const card = (await server.client.models.retrieve("alias/with/slash")) as unknown as Record<
      string,
      unknown
    >;
    assert.deepEqual(
      [card.id, card.root, card.max_model_len, card.owned_by],
      ["alias/with/slash", model, 4096, "octavo"],
    );
    const unescaped = await fetch(`${server.url}/v1/models/alias/with/slash`);
    assert.equal(unescaped.status, 200);
    const answer = await server.client.chat.completions.create({
      model: "alias/with/slash",
      messages: [{ role: "user", content: "x" }],
    });
    assert.equal(answer.model, "main");
  });

  it("throws NotFoundError for unknown names", async () => {
    await using server = await startTestServer();
    await assert.rejects(server.client.models.retrieve("nope"), NotFoundError);
    const chat = server.client.chat.completions.create({
      model: "nope",
      messages: [{ role: "user", content: "x" }],
    });
    await assert.rejects(chat, (error: unknown) => {
      assert.ok(error instanceof NotFoundError);
      assert.equal(error.type, "NotFoundError");
      assert.equal(error.param, "model");
      assert.match(error.message, /"nope" does not exist here; this server serves "fake\/model"/);
      return true;
    });
  });

  it("takes a request without a model name", async () => {
    await using server = await startTestServer();
    assert.equal((await server.post("/v1/completions", { prompt: "a" })).status, 200);
  });
});

describe("tokenize and detokenize", () => {
  it("turn text into ids and back", async () => {
    await using server = await startTestServer();
    const tokens = (await (
      await server.post("/tokenize", { prompt: "é<|im_end|>", return_token_strs: true })
    ).json()) as { tokens: number[] };
    assert.deepEqual(tokens, {
      count: 4,
      max_model_len: 4096,
      tokens: [256, 0xc3, 0xa9, 259],
      token_strs: ["<|bos|>", "<0xc3>", "<0xa9>", "<|im_end|>"],
    });
    const text = await (await server.post("/detokenize", { tokens: tokens.tokens.slice(1) })).json();
    assert.deepEqual(text, { prompt: "é<|im_end|>" });
  });

  it("tokenizes messages as chat does", async () => {
    await using server = await startTestServer();
    const messages = [{ role: "user", content: "hi" }];
    const { tokens } = (await (await server.post("/tokenize", { messages })).json()) as { tokens: number[] };
    await server.post("/v1/chat/completions", { messages });
    assert.deepEqual(tokens, Array.from(server.model.engine.requests[0]?.promptTokens ?? []));
  });

  it("refuse what is neither or both, and ids outside the vocabulary", async () => {
    await using server = await startTestServer();
    for (const body of [{}, { prompt: "a", messages: [{ role: "user", content: "x" }] }, { prompt: 5 }]) {
      assert.equal((await server.post("/tokenize", body)).status, 400);
    }
    for (const tokens of [[261], [-1], ["a"], "a", undefined]) {
      assert.equal((await server.post("/detokenize", { tokens })).status, 400);
    }
  });
});

describe("status endpoints", () => {
  it("answer health, ping, version and load", async () => {
    await using server = await startTestServer({}, { stepDelayMs: 3, reply: () => "x".repeat(200) });
    assert.equal((await fetch(`${server.url}/health`)).status, 200);
    assert.equal((await fetch(`${server.url}/ping`)).status, 200);
    assert.equal((await fetch(`${server.url}/ping`, { method: "POST" })).status, 200);
    assert.match(
      ((await (await fetch(`${server.url}/version`)).json()) as { version: string }).version,
      /^\d+\.\d+\.\d+/,
    );
    const running = server.post("/v1/completions", { prompt: "a", max_tokens: 200 });
    while (server.model.engine.requests.length === 0) await new Promise((resolve) => setTimeout(resolve, 1));
    assert.deepEqual(await (await fetch(`${server.url}/load`)).json(), { server_load: 1 });
    await running;
  });

  it("health tells of a stopped engine", async () => {
    await using server = await startTestServer();
    const { OctavoError } = await import("@octavo/protocol");
    server.model.engine.failure = new OctavoError("engine_failed", "out of blocks");
    const response = await fetch(`${server.url}/health`);
    assert.equal(response.status, 503);
    assert.match(await response.text(), /out of blocks/);
    assert.equal((await server.post("/v1/completions", { prompt: "a" })).status, 503);
  });
});
