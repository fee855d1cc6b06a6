import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createSseDecoder, OctavoError, type Completion } from "@octavo/protocol";
import { startTestServer, type TestServer } from "../testing/test-server.js";

const model = "fake/model";

async function streamChunks(server: TestServer, body: object): Promise<readonly Completion[]> {
  const response = await server.post("/v1/completions", { ...body, stream: true });
  assert.equal(response.status, 200);
  const decoder = createSseDecoder();
  const events = decoder.push(await response.text()).map((event) => event.data);
  assert.equal(events.at(-1), "[DONE]");
  return events.slice(0, -1).map((data) => JSON.parse(data) as Completion);
}

describe("completions", () => {
  it("takes all four forms of prompt and numbers the choices by prompt, then by sequence", async () => {
    await using server = await startTestServer({}, { reply: (prompt, index) => `${prompt}${index}` });
    const forms = [
      { prompt: "ab", texts: ["ab0", "ab1"] },
      { prompt: ["a", "b"], texts: ["a0", "a1", "b0", "b1"] },
      { prompt: [97, 98], texts: ["ab0", "ab1"] },
      { prompt: [[97], [98, 99]], texts: ["a0", "a1", "bc0", "bc1"] },
    ];
    for (const { prompt, texts } of forms) {
      const answer = await server.client.completions.create({ model, prompt, n: 2 });
      assert.match(answer.id, /^cmpl-/);
      assert.deepEqual(
        answer.choices.map(({ index, text }) => [index, text]),
        texts.map((text, index) => [index, text]),
      );
    }
  });

  it("adds special tokens to text and none to ids", async () => {
    await using server = await startTestServer();
    await server.client.completions.create({ model, prompt: ["a"] });
    await server.client.completions.create({ model, prompt: [[97]] });
    await server.post("/v1/completions", { prompt: "a", add_special_tokens: false });
    assert.deepEqual(
      server.model.engine.requests.map((request) => Array.from(request.promptTokens)),
      [[256, 97], [97], [97]],
    );
  });

  it("generates 16 tokens unless told otherwise, and fewer where no more fit", async () => {
    await using server = await startTestServer({}, { maxModelLen: 10, reply: () => "x".repeat(50) });
    await server.client.completions.create({ model, prompt: [97] });
    assert.equal(server.model.engine.requests[0]?.params.maxTokens, 9);
    const asked = await server.post("/v1/completions", { prompt: [97], max_tokens: 16 });
    assert.equal(asked.status, 400, "what was asked for is never cut");
    assert.equal(asked.headers.get("x-octavo-error-code"), "context_length_exceeded");
  });

  it("sums usage over prompts", async () => {
    await using server = await startTestServer({}, { reply: () => "abc", cachedTokens: 1 });
    const answer = await server.client.completions.create({ model, prompt: [[97], [98, 99]] });
    assert.deepEqual(answer.usage, {
      prompt_tokens: 3,
      completion_tokens: 6,
      total_tokens: 9,
      prompt_tokens_details: { cached_tokens: 2 },
    });
  });

  it("gives legacy logprobs with offsets in code points", async () => {
    await using server = await startTestServer({}, { reply: () => "a😀b" });
    const answer = await server.client.completions.create({ model, prompt: "p", logprobs: 1 });
    const logprobs = answer.choices[0]?.logprobs;
    assert.deepEqual(logprobs?.tokens, [
      "a",
      "bytes:\\xf0",
      "bytes:\\x9f",
      "bytes:\\x98",
      "bytes:\\x80",
      "b",
    ]);
    assert.deepEqual(logprobs?.text_offset, [0, 1, 1, 1, 1, 2]);
    assert.deepEqual(logprobs?.top_logprobs?.[5], { b: -0.375 });
    assert.equal(logprobs?.token_logprobs?.length, 6);
  });

  it("shows tokens as ids on request", async () => {
    await using server = await startTestServer({}, { reply: () => "a" });
    const response = await server.post("/v1/completions", {
      prompt: "p",
      logprobs: 0,
      return_tokens_as_token_ids: true,
    });
    const answer = (await response.json()) as Completion;
    assert.deepEqual(answer.choices[0]?.logprobs?.tokens, ["token_id:97"]);
    assert.deepEqual(answer.choices[0]?.logprobs?.top_logprobs, [{ "token_id:97": -0.25 }]);
  });

  it("echoes the prompt with its logprobs", async () => {
    await using server = await startTestServer({}, { reply: () => "c" });
    const answer = await server.client.completions.create({
      model,
      prompt: [97, 98],
      echo: true,
      logprobs: 1,
    });
    const [choice] = answer.choices;
    assert.equal(choice?.text, "abc");
    assert.deepEqual(choice?.logprobs?.tokens, ["a", "b", "c"]);
    assert.deepEqual(choice?.logprobs?.token_logprobs, [null, -0.375, -0.25]);
    assert.deepEqual(choice?.logprobs?.text_offset, [0, 1, 2]);
    assert.equal(choice?.logprobs?.top_logprobs?.[0], null);
  });

  it("scores a prompt without generating, with echo and max_tokens 0", async () => {
    await using server = await startTestServer({}, { reply: () => "c" });
    const body = { model, prompt: [97, 98], echo: true, logprobs: 1, max_tokens: 0 };
    const answer = await server.client.completions.create(body);
    assert.equal(answer.choices[0]?.text, "ab");
    assert.deepEqual(answer.choices[0]?.logprobs?.tokens, ["a", "b"]);
    assert.equal(answer.usage?.completion_tokens, 0);
    const [chunk] = await streamChunks(server, body);
    assert.equal(chunk?.choices[0]?.text, "ab");
    const bare = await server.post("/v1/completions", { prompt: "a", max_tokens: 0 });
    assert.equal(bare.status, 400);
  });

  it("streams the same choices as it answers at once, prompts side by side", async () => {
    await using server = await startTestServer(
      {},
      { reply: (prompt, index) => `${prompt}é${index}`, stepDelayMs: 1 },
    );
    const body = { prompt: ["a", "b"], n: 2, echo: true, logprobs: 1 };
    const whole = (await (await server.post("/v1/completions", body)).json()) as Completion;
    const chunks = await streamChunks(server, body);
    for (const choice of whole.choices) {
      const parts = chunks.flatMap((chunk) => chunk.choices.filter((part) => part.index === choice.index));
      assert.equal(parts.map((part) => part.text).join(""), choice.text);
      assert.deepEqual(
        parts.flatMap((part) => part.logprobs?.tokens ?? []),
        choice.logprobs?.tokens,
      );
      assert.deepEqual(
        parts.flatMap((part) => part.logprobs?.text_offset ?? []),
        choice.logprobs?.text_offset,
      );
      assert.equal(parts.at(-1)?.finish_reason, "stop");
      assert.ok(parts.slice(0, -1).every((part) => part.finish_reason === null));
    }
  });

  it("streams usage over all prompts", async () => {
    await using server = await startTestServer({}, { reply: () => "abc" });
    const chunks = await streamChunks(server, {
      prompt: [[97], [98, 99]],
      stream_options: { include_usage: true },
    });
    assert.deepEqual(chunks.at(-1)?.choices, []);
    assert.equal(chunks.at(-1)?.usage?.total_tokens, 9);
    assert.equal(chunks[0]?.usage, null);
  });

  it("ends the other prompts when one of them is refused or fails", async () => {
    await using server = await startTestServer({}, { stepDelayMs: 1, reply: () => "x".repeat(100) });
    const { engine } = server.model;
    const generate = engine.generate.bind(engine);
    let calls = 0;
    engine.generate = (request, signal) => {
      if (++calls === 3) throw new OctavoError("queue_full", "no room");
      return generate(request, signal);
    };
    const response = await server.post("/v1/completions", { prompt: ["a", "b", "c"], max_tokens: 100 });
    assert.equal(response.status, 429);
    await engine.whenIdle();
    assert.equal(engine.aborted.length, 2);
  });

  it("yields to the event loop between the texts of a request", async () => {
    await using server = await startTestServer();
    const prompt = Array.from({ length: 64 }, () => "x".repeat(4000));
    let longestRun = 0;
    let run = 0;
    const { tokenizer } = server.model;
    const encodeAsync = tokenizer.encodeAsync.bind(tokenizer);
    tokenizer.encodeAsync = (text, options) => {
      if (run === 0) setImmediate(() => (run = 0));
      run += 1;
      longestRun = Math.max(longestRun, run);
      return encodeAsync(text, options);
    };
    const response = await server.post("/v1/completions", { prompt, max_tokens: 1 });
    assert.equal(response.status, 200);
    assert.ok(longestRun <= 4, `${longestRun} texts in one turn`);
  });

  it("says which prompt is wrong", async () => {
    await using server = await startTestServer({}, { maxModelLen: 16 });
    const cases = [
      { prompt: [[97], [999]], param: "prompt[1][0]" },
      { prompt: ["a", "x".repeat(50)], param: "prompt[1]" },
      { prompt: [], param: "prompt" },
      { prompt: [[]], param: "prompt" },
      { prompt: ["a", 5], param: "prompt[1]" },
      { prompt: [1.5], param: "prompt[0]" },
      { prompt: [-1], param: "prompt[0]" },
      { prompt: { a: 1 }, param: "prompt" },
      { prompt: Array.from({ length: 3000 }, () => "a"), param: "prompt" },
    ];
    for (const { prompt, param } of cases) {
      const response = await server.post("/v1/completions", { prompt });
      const { error } = (await response.json()) as { error: { param: string; message: string } };
      assert.equal(response.status, 400, error.message);
      assert.equal(error.param, param, error.message);
    }
    assert.equal(server.model.engine.requests.length, 0);
  });
});
