import assert from "node:assert/strict";
import { describe, it } from "node:test";
import OpenAI from "openai";
import { startTestServer } from "../testing/test-server.js";

const messages = [{ role: "user", content: "hi" }] as const;
const model = "fake/model";

describe("chat completions through the openai package", () => {
  it("answers with content, usage and a finish reason", async () => {
    await using server = await startTestServer({}, { cachedTokens: 16 });
    const answer = await server.client.chat.completions.create({ model, messages: [...messages] });
    assert.match(answer.id, /^chatcmpl-/);
    assert.equal(answer.object, "chat.completion");
    assert.equal(answer.model, model);
    assert.match(answer.system_fingerprint ?? "", /^fp_[0-9a-f]{16}$/);
    assert.ok(Math.abs(answer.created - Date.now() / 1000) < 60);
    const [choice] = answer.choices;
    assert.deepEqual(choice?.message, { role: "assistant", content: "Hello, wörld 0!", reasoning: null });
    assert.equal(choice?.finish_reason, "stop");
    const prompt = "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n";
    const promptTokens = server.model.tokenizer.encode(prompt, { addSpecialTokens: false });
    assert.deepEqual(server.model.engine.requests[0]?.promptTokens, promptTokens);
    assert.deepEqual(answer.usage, {
      prompt_tokens: promptTokens.length,
      completion_tokens: 16,
      total_tokens: promptTokens.length + 16,
      prompt_tokens_details: { cached_tokens: 16 },
    });
  });

  it("gives n choices in order", async () => {
    await using server = await startTestServer();
    const answer = await server.client.chat.completions.create({ model, messages: [...messages], n: 3 });
    assert.deepEqual(
      answer.choices.map(({ index, message }) => [index, message.content]),
      [0, 1, 2].map((index) => [index, `Hello, wörld ${index}!`]),
    );
    assert.equal(answer.usage?.completion_tokens, 48);
  });

  it("says length when max_tokens ends the answer", async () => {
    await using server = await startTestServer();
    for (const limit of [{ max_tokens: 5 }, { max_completion_tokens: 5 }]) {
      const answer = await server.client.chat.completions.create({
        model,
        messages: [...messages],
        ...limit,
      });
      assert.equal(answer.choices[0]?.message.content, "Hello");
      assert.equal(answer.choices[0]?.finish_reason, "length");
    }
  });

  it("reports logprobs with bytes, so that split characters can be put together", async () => {
    await using server = await startTestServer({}, { reply: () => "é!" });
    const answer = await server.client.chat.completions.create({
      model,
      messages: [...messages],
      logprobs: true,
      top_logprobs: 2,
    });
    const content = answer.choices[0]?.logprobs?.content ?? [];
    assert.deepEqual(
      content.map(({ token }) => token),
      ["bytes:\\xc3", "bytes:\\xa9", "!"],
    );
    const bytes = content.flatMap((entry) => entry.bytes ?? []);
    assert.equal(Buffer.from(bytes).toString("utf8"), "é!");
    assert.equal(content[2]?.logprob, -0.5);
    assert.deepEqual(content[2]?.top_logprobs, [
      { token: "!", logprob: -0.5, bytes: [0x21] },
      { token: '"', logprob: -1.5, bytes: [0x22] },
    ]);
    assert.equal(server.model.engine.requests[0]?.params.logprobs, 2);
  });

  it("writes probabilities of zero as a number that JSON has", async () => {
    await using server = await startTestServer({ maxLogprobs: -1 });
    const { engine } = server.model;
    const original = engine.generate.bind(engine);
    engine.generate = async function* (request, signal) {
      for await (const event of original(request, signal)) {
        if (event.kind !== "delta") yield event;
        else {
          const deltas = event.deltas.map((delta) => ({
            ...delta,
            logprobs: delta.logprobs?.map((entry) => ({
              ...entry,
              top: [{ token: 1, logprob: Number.NEGATIVE_INFINITY }],
            })),
          }));
          yield { kind: "delta", deltas };
        }
      }
    };
    const answer = await server.client.chat.completions.create({
      model,
      messages: [...messages],
      logprobs: true,
      top_logprobs: 1,
    });
    assert.equal(answer.choices[0]?.logprobs?.content?.[0]?.top_logprobs[0]?.logprob, -9999);
  });

  it("maps every sampling field, the request's first, then the checkpoint's, then OpenAI's defaults", async () => {
    await using server = await startTestServer();
    Object.assign(server.model.generation, { temperature: 0.6, topP: 0.95, topK: 20, maxNewTokens: 77 });
    const extras = {
      temperature: 0.1,
      top_k: -1,
      min_p: 0.05,
      presence_penalty: 0.5,
      frequency_penalty: -0.5,
      repetition_penalty: 1.1,
      seed: 42,
      stop: ["a", "b"],
      stop_token_ids: [7],
      include_stop_str_in_output: true,
      ignore_eos: true,
      min_tokens: 3,
      skip_special_tokens: false,
      logit_bias: { "65": 5, "66": -100 },
      allowed_token_ids: [65, 66],
      bad_words: ["no"],
      prompt_logprobs: 1,
      logprob_token_ids: [65],
      cache_salt: "tenant",
    };
    assert.equal((await server.post("/v1/chat/completions", { messages, ...extras })).status, 200);
    const [first] = server.model.engine.requests;
    assert.deepEqual(first?.params, {
      n: 1,
      maxTokens: 77,
      minTokens: 3,
      temperature: 0.1,
      topP: 0.95,
      topK: 0,
      minP: 0.05,
      presencePenalty: 0.5,
      frequencyPenalty: -0.5,
      repetitionPenalty: 1.1,
      logitBias: new Map([
        [65, 5],
        [66, -100],
      ]),
      allowedTokenIds: [65, 66],
      badWords: ["no"],
      stop: ["a", "b"],
      stopTokenIds: [7],
      includeStopStrInOutput: true,
      ignoreEos: true,
      seed: 42n,
      logprobs: 0,
      promptLogprobs: 1,
      logprobTokenIds: [65],
      skipSpecialTokens: false,
    });
    assert.equal(first?.cacheSalt, "tenant");
    await server.post("/v1/chat/completions", { messages, temperature: null, stop: null, n: null });
    const params = server.model.engine.requests[1]?.params;
    assert.deepEqual(
      [params?.temperature, params?.topK, params?.minP, params?.stop, params?.n, params?.seed],
      [0.6, 20, 0, [], 1, undefined],
    );
  });

  it("returns prompt logprobs and token ids on request", async () => {
    await using server = await startTestServer();
    const response = await server.post("/v1/chat/completions", {
      messages,
      prompt_logprobs: 1,
      return_token_ids: true,
      max_tokens: 2,
    });
    const answer = (await response.json()) as {
      prompt_logprobs: (Record<string, { logprob: number; rank: number; decoded_token: string }> | null)[];
      prompt_token_ids: number[];
      choices: { token_ids: number[] }[];
    };
    assert.equal(answer.prompt_logprobs.length, answer.prompt_token_ids.length);
    assert.equal(answer.prompt_logprobs[0], null);
    assert.deepEqual(answer.prompt_logprobs[1]?.[String(answer.prompt_token_ids[1])], {
      logprob: -0.375,
      rank: 1,
      decoded_token: "u",
    });
    assert.deepEqual(answer.choices[0]?.token_ids, [72, 101]);
  });

  it("continues and echoes the last message", async () => {
    await using server = await startTestServer();
    const body = {
      messages: [...messages, { role: "assistant", content: "I think" }],
      continue_final_message: true,
      add_generation_prompt: false,
      echo: true,
    };
    const answer = (await (await server.post("/v1/chat/completions", body)).json()) as OpenAI.ChatCompletion;
    assert.equal(answer.choices[0]?.message.content, "I thinkHello, wörld 0!");
    assert.equal(server.model.rendered[0]?.continueFinalMessage, true);
    assert.equal(server.model.rendered[0]?.addGenerationPrompt, false);
  });

  it("gives templates tools, documents, variables and parsed arguments", async () => {
    await using server = await startTestServer({}, { toolTemplate: true });
    const tool = {
      type: "function",
      function: { name: "add", parameters: { type: "object", properties: { a: { type: "number" } } } },
    } as const;
    await server.post("/v1/chat/completions", {
      messages: [
        {
          role: "developer",
          content: [
            { type: "text", text: "be" },
            { type: "text", text: "kind" },
          ],
        },
        {
          role: "assistant",
          content: null,
          tool_calls: [{ id: "c1", type: "function", function: { name: "add", arguments: '{"a":1}' } }],
        },
        { role: "tool", tool_call_id: "c1", content: "2" },
      ],
      tools: [tool],
      tool_choice: "auto",
      documents: [{ title: "t", text: "x" }],
      chat_template_kwargs: { enable_thinking: false },
      reasoning_effort: "low",
    });
    const [input] = server.model.rendered;
    assert.deepEqual(input?.messages, [
      { role: "system", content: "be\nkind" },
      {
        role: "assistant",
        content: "",
        tool_calls: [{ id: "c1", type: "function", function: { name: "add", arguments: { a: 1 } } }],
      },
      { role: "tool", content: "2", tool_call_id: "c1" },
    ]);
    assert.deepEqual(input?.tools, [tool]);
    assert.deepEqual(input?.documents, [{ title: "t", text: "x" }]);
    assert.deepEqual(input?.variables, { reasoning_effort: "low", enable_thinking: false });
    const prompt = server.model.tokenizer.decode(server.model.engine.requests[0]?.promptTokens ?? [], {
      skipSpecialTokens: false,
    });
    assert.ok(prompt.startsWith("tools:"), "the tool_use template is taken");
  });

  it("keeps content parts for templates that read them, and the developer role for those that know it", async () => {
    await using server = await startTestServer(
      {},
      {
        templateSource:
          "{% for m in messages %}{% for c in m.content %}{{ m.role == 'developer' }}{% endfor %}{% endfor %}",
      },
    );
    await server.post("/v1/chat/completions", { messages: [{ role: "developer", content: "x" }] });
    assert.deepEqual(server.model.rendered[0]?.messages, [
      { role: "developer", content: [{ type: "text", text: "x" }] },
    ]);
  });

  it("renders a request's template only where that is trusted", async () => {
    const body = { messages, chat_template: "custom:" };
    {
      await using server = await startTestServer();
      const response = await server.post("/v1/chat/completions", body);
      assert.equal(response.status, 400);
      assert.equal(response.headers.get("x-octavo-error-code"), "unsupported_parameter");
    }
    await using server = await startTestServer({ trustRequestChatTemplate: true });
    assert.equal((await server.post("/v1/chat/completions", body)).status, 200);
    assert.ok(
      server.model.tokenizer
        .decode(server.model.engine.requests[0]?.promptTokens ?? [])
        .startsWith("custom:"),
    );
    const looping = await server.post("/v1/chat/completions", { messages, chat_template: "loop" });
    assert.equal(looping.headers.get("x-octavo-error-code"), "template_error");
  });

  it("renders a model's template in a worker when it has much to do", async () => {
    for (const templateWork of [0, 10_000_000]) {
      await using server = await startTestServer({}, { templateSource: "worker:", templateWork });
      assert.equal((await server.post("/v1/chat/completions", { messages })).status, 200);
      const prompt = server.model.tokenizer.decode(server.model.engine.requests[0]?.promptTokens ?? []);
      assert.equal(prompt.startsWith("worker:"), templateWork > 0);
    }
  });

  it("cuts the prompt only when asked to", async () => {
    await using server = await startTestServer({}, { maxModelLen: 24 });
    const long = [{ role: "user", content: "x".repeat(100) }];
    const refused = await server.post("/v1/chat/completions", { messages: long });
    assert.equal(refused.status, 400);
    const { error } = (await refused.json()) as { error: { message: string; param: string } };
    assert.match(error.message, /the prompt has 119 tokens and this model's context length is 24 tokens/);
    assert.equal(refused.headers.get("x-octavo-error-code"), "context_length_exceeded");
    const cut = await server.post("/v1/chat/completions", { messages: long, truncate_prompt_tokens: 8 });
    assert.equal(cut.status, 200);
    assert.equal(server.model.engine.requests[0]?.promptTokens.length, 8);
    const most = await server.post("/v1/chat/completions", { messages: long, truncate_prompt_tokens: -1 });
    assert.equal(most.status, 200);
    assert.equal(server.model.engine.requests[1]?.promptTokens.length, 23);
  });

  it("names both counts when max_tokens does not fit", async () => {
    await using server = await startTestServer({}, { maxModelLen: 64 });
    const response = await server.post("/v1/chat/completions", { messages, max_tokens: 1000 });
    assert.equal(response.status, 400);
    const { error } = (await response.json()) as { error: { message: string; param: string } };
    assert.equal(error.param, "max_tokens");
    assert.match(
      error.message,
      /64 tokens; the prompt has 21 and max_tokens asks for 1000, together 1021; ask for at most 43/,
    );
  });
});
