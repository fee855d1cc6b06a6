import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { LLM } from "@octavo/engine";
import { chatCompletionRequest, completionRequest, type Completion } from "@octavo/protocol";
import OpenAI, { BadRequestError } from "openai";
import { pino } from "pino";
import { createServer, type OctavoServer } from "./create-server.js";
import { parseExposition } from "./testing/parse-exposition.js";

interface Fixture {
  readonly prompt: readonly number[];
  readonly greedy: readonly number[];
  readonly pooled: { readonly mean: readonly number[] };
}

const fixtures = new URL("../../artifacts/fixtures/models/", import.meta.url);
const expected = JSON.parse(readFileSync(new URL("llama3.json", fixtures), "utf8")) as Fixture;
const prompt = [...expected.prompt];
const chatTemplate =
  "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}";

/** The whole way: openai package, socket, server, engine, kernels, a checkpoint whose tokens transformers computed. */
describe("a server over a real engine", () => {
  let llm: LLM;
  let server: OctavoServer;
  let client: OpenAI;
  let url: string;

  before(async () => {
    llm = await LLM.load(fileURLToPath(new URL("checkpoints/llama3", fixtures)), {
      maxModelLen: 256,
      maxNumSeqs: 16,
      maxNumBatchedTokens: 64,
      numThreads: 2,
      maxQueuedRequests: 64,
      chatTemplate,
    });
    const config = {
      port: 0,
      servedModelNames: ["tiny"],
      pooling: "mean",
      keepAliveTimeoutMs: 1000,
    } as const;
    server = createServer({ model: llm, config, logger: pino({ level: "silent" }) });
    ({ url } = await server.listen());
    client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "none", maxRetries: 0 });
  });
  after(async () => {
    await server.close();
    await llm[Symbol.asyncDispose]();
  });

  async function untilIdle(): Promise<void> {
    while (llm.engine.stats.running + llm.engine.stats.waiting > 0)
      await new Promise((resolve) => setTimeout(resolve, 2));
  }

  async function complete(body: object): Promise<Completion> {
    const response = await fetch(`${url}/v1/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ prompt, temperature: 0, ignore_eos: true, return_token_ids: true, ...body }),
    });
    assert.equal(response.status, 200);
    return (await response.json()) as Completion;
  }

  it("generates transformers' tokens", async () => {
    const answer = await complete({ max_tokens: 64 });
    assert.deepEqual(answer.choices[0]?.token_ids, expected.greedy);
    assert.deepEqual(answer.choices[0]?.prompt_token_ids, prompt);
  });

  it("gives every request of a crowd the answer it gets alone", async () => {
    const alone = await complete({ max_tokens: 32 });
    const crowd = await Promise.all(
      Array.from({ length: 24 }, (_, index) => complete({ max_tokens: 8 + index })),
    );
    for (const [index, answer] of crowd.entries()) {
      assert.deepEqual(answer.choices[0]?.token_ids, alone.choices[0]?.token_ids?.slice(0, 8 + index));
    }
  });

  it("reports cached tokens when a prompt comes again", async () => {
    const answer = await complete({ max_tokens: 1 });
    assert.equal(answer.usage?.prompt_tokens_details?.cached_tokens, 16);
    const salted = await complete({ max_tokens: 1, cache_salt: "other tenant" });
    assert.equal(salted.usage?.prompt_tokens_details?.cached_tokens, 0);
  });

  it("streams a chat as it answers it, with a seed", async () => {
    const body = {
      model: "tiny",
      messages: [{ role: "user" as const, content: "the cat" }],
      max_tokens: 24,
      seed: 11,
      n: 2,
    };
    const whole = await client.chat.completions.create(body);
    const texts = ["", ""];
    for await (const chunk of await client.chat.completions.create({ ...body, stream: true })) {
      for (const choice of chunk.choices) texts[choice.index] += choice.delta.content ?? "";
    }
    assert.deepEqual(
      texts,
      whole.choices.map((choice) => choice.message.content),
    );
    assert.notEqual(texts[0], texts[1]);
  });

  it("gives logprobs that belong to the tokens and are ordered", async () => {
    const answer = await client.chat.completions.create({
      model: "tiny",
      messages: [{ role: "user", content: "the cat" }],
      max_tokens: 12,
      temperature: 0,
      logprobs: true,
      top_logprobs: 3,
    });
    const content = answer.choices[0]?.logprobs?.content ?? [];
    assert.ok(content.length > 0);
    for (const entry of content) {
      assert.equal(entry.token, entry.top_logprobs[0]?.token, "greedy takes the most likely token");
      assert.equal(entry.top_logprobs.length, 3);
      const values = entry.top_logprobs.map(({ logprob }) => logprob);
      assert.deepEqual(
        values,
        values.toSorted((a, b) => b - a),
      );
      assert.ok(entry.logprob <= 0);
    }
  });

  it("scores a prompt, and the scores do not depend on what is generated", async () => {
    const scored = await complete({ echo: true, logprobs: 1, max_tokens: 0 });
    const generated = await complete({ echo: true, logprobs: 1, max_tokens: 4 });
    const scores = scored.choices[0]?.logprobs?.token_logprobs ?? [];
    assert.equal(scores.length, prompt.length);
    assert.equal(scores[0], null);
    assert.deepEqual(generated.choices[0]?.logprobs?.token_logprobs.slice(0, prompt.length), scores);
    assert.equal(generated.choices[0]?.logprobs?.tokens.length, prompt.length + 4);
  });

  it("stops at a stop string and says so", async () => {
    const free = await complete({ max_tokens: 32 });
    const text = free.choices[0]?.text ?? "";
    const stop = text.slice(8, 11);
    const stopped = await complete({ max_tokens: 32, stop: [stop] });
    assert.equal(stopped.choices[0]?.text, text.slice(0, text.indexOf(stop)));
    assert.equal(stopped.choices[0]?.finish_reason, "stop");
    assert.equal(stopped.choices[0]?.stop_reason, stop);
  });

  it("embeds as transformers pools", async () => {
    const { data } = await client.embeddings.create({
      model: "tiny",
      input: prompt,
      encoding_format: "float",
    });
    const norm = Math.hypot(...expected.pooled.mean);
    for (const [index, value] of expected.pooled.mean.entries()) {
      assert.ok(Math.abs((data[0]?.embedding[index] ?? Number.NaN) - value / norm) < 1e-4);
    }
  });

  it("tokenizes there and back", async () => {
    const post = async (path: string, body: object): Promise<Record<string, unknown>> => {
      const headers = { "content-type": "application/json" };
      const response = await fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) });
      assert.equal(response.status, 200);
      return (await response.json()) as Record<string, unknown>;
    };
    const text = "the cat, é😀 and  the dog";
    const { tokens } = await post("/tokenize", { prompt: text, add_special_tokens: false });
    assert.deepEqual(await post("/detokenize", { tokens }), { prompt: text });
  });

  it("rejects requests that do not fit, with the counts, and keeps serving", async () => {
    const long = client.completions.create({ model: "tiny", prompt: Array.from({ length: 300 }, () => 65) });
    await assert.rejects(
      long,
      (error: unknown) => error instanceof BadRequestError && /300 tokens.*256 tokens/.test(error.message),
    );
    await complete({ max_tokens: 1 });
  });

  it("answers any value of any field with success or a client's error", async () => {
    const values = [
      -1,
      0,
      0.5,
      3,
      2 ** 31,
      2 ** 53,
      1e308,
      -1e308,
      "1",
      "",
      true,
      null,
      [],
      [[]],
      {},
      { "1": 1 },
      ["a"],
      [1],
      [-1],
      [1e9],
    ];
    const completionFields = Object.keys(completionRequest.shape).filter(
      (field) => field !== "model" && field !== "stream",
    );
    const chatFields = Object.keys(chatCompletionRequest.shape).filter(
      (field) => !Object.hasOwn(completionRequest.shape, field),
    );
    const messages = [{ role: "user", content: "the cat" }];
    const cases = [
      ...completionFields.map((field) => ({
        path: "/v1/completions",
        field,
        body: { prompt, max_tokens: 2 },
      })),
      ...chatFields.map((field) => ({
        path: "/v1/chat/completions",
        field,
        body: { messages, max_tokens: 2 },
      })),
    ];
    for (const { path, field, body } of cases) {
      const statuses = await Promise.all(
        values.map(async (value) => {
          const headers = { "content-type": "application/json" };
          const response = await fetch(url + path, {
            method: "POST",
            headers,
            body: JSON.stringify({ ...body, [field]: value }),
          });
          await response.text();
          return response.status;
        }),
      );
      for (const [index, status] of statuses.entries()) {
        assert.ok(
          status === 200 || status === 400,
          `${field}: ${JSON.stringify(values[index])} gives ${status}`,
        );
      }
    }
    await untilIdle();
    assert.equal(llm.engine.stats.kvCacheUsage, 0);
    assert.equal(llm.engine.failure, undefined);
  });

  it("frees the blocks of clients that leave", async () => {
    const aborts = Array.from({ length: 12 }, () => new AbortController());
    const streams = aborts.map(async (abort) => {
      const body = { model: "tiny", prompt, max_tokens: 200, stream: true, ignore_eos: true } as const;
      const stream = await client.completions.create(body, { signal: abort.signal });
      for await (const _ of stream) abort.abort();
    });
    await Promise.all(streams);
    await untilIdle();
    assert.equal(llm.engine.stats.kvCacheUsage, 0);
  });

  it("counts generated tokens exactly", async () => {
    const counted = async (): Promise<number> => {
      await untilIdle();
      const families = parseExposition(await (await fetch(`${url}/metrics`)).text());
      return families.get("vllm:generation_tokens_total")?.samples[0]?.value ?? Number.NaN;
    };
    const countedBefore = await counted();
    const answers = await Promise.all([
      complete({ max_tokens: 7 }),
      complete({ max_tokens: 9, n: 3 }),
      complete({ max_tokens: 1, n: 2 }),
    ]);
    const generated = answers.reduce((sum, answer) => sum + (answer.usage?.completion_tokens ?? 0), 0);
    assert.equal(generated, 7 + 27 + 2);
    assert.equal((await counted()) - countedBefore, generated);
  });

  it("accepts more prompts in one request than the queue holds, and rejects too many choices", async () => {
    const prompts = Array.from({ length: 200 }, (_, index) => [1 + (index % 64), 7]);
    const answer = await complete({ prompt: prompts, max_tokens: 1 });
    assert.deepEqual(
      answer.choices.map((choice) => choice.index),
      prompts.map((_, index) => index),
    );
    const { data } = await client.embeddings.create({ model: "tiny", input: prompts });
    assert.equal(data.length, prompts.length);
    const many = { model: "tiny", prompt: prompts, n: 128, max_tokens: 1 };
    await assert.rejects(client.completions.create(many), (error: unknown) => {
      assert.ok(error instanceof BadRequestError);
      assert.equal(error.param, "n");
      assert.match(error.message, /200 prompts with n = 128 are 25600/);
      return true;
    });
  });

  it("counts no prompt tokens of a request that was cancelled while waiting", async () => {
    const promptTokens = async (): Promise<number> => {
      await untilIdle();
      const families = parseExposition(await (await fetch(`${url}/metrics`)).text());
      const { samples = [] } = families.get("vllm:prompt_tokens_by_source_total") ?? {};
      return samples.reduce((sum, { value }) => sum + value, 0);
    };
    const countedBefore = await promptTokens();
    const abort = new AbortController();
    const crowd = complete({ n: 32, max_tokens: 100 });
    while (llm.engine.stats.running < 16) await new Promise((resolve) => setTimeout(resolve, 1));
    const body = { model: "tiny", prompt, max_tokens: 5 };
    const left = client.completions.create(body, { signal: abort.signal });
    const { waiting } = llm.engine.stats;
    while (llm.engine.stats.waiting <= waiting) await new Promise((resolve) => setTimeout(resolve, 1));
    abort.abort();
    await assert.rejects(left);
    await crowd;
    assert.equal((await promptTokens()) - countedBefore, prompt.length);
  });

  it("counts it all in its metrics", async () => {
    await untilIdle();
    const families = parseExposition(await (await fetch(`${url}/metrics`)).text());
    const total = (name: string): number =>
      (families.get(name)?.samples ?? []).reduce((sum, sample) => sum + sample.value, 0);
    assert.ok(total("vllm:request_success_total") > 40);
    assert.ok(total("vllm:generation_tokens_total") > 600);
    assert.ok(total("vllm:prefix_cache_hits_total") > 0);
    assert.ok(total("vllm:prefix_cache_hits_total") < total("vllm:prefix_cache_queries_total"));
    assert.equal(total("vllm:num_requests_running"), 0);
    assert.equal(total("vllm:kv_cache_usage_perc"), 0);
    const blocks = families.get("octavo:kv_cache_blocks")?.samples ?? [];
    assert.equal(
      blocks.reduce((sum, sample) => sum + sample.value, 0),
      llm.engine.stats.totalBlocks,
    );
    assert.ok(blocks.every((sample) => sample.value >= 0));
  });
});
