import assert from "node:assert/strict";
import { describe, it } from "node:test";
import Anthropic, { NotFoundError } from "@anthropic-ai/sdk";
import type { MessageAnswer } from "@octavo/protocol";
import { OctavoError } from "@octavo/protocol";
import { startTestServer, type TestServer } from "../testing/test-server.js";
import { transcripts, transcriptTools } from "@octavo/text/parsers/testing/transcripts";

const model = "fake/model";
const max_tokens = 1024;
const messages: Anthropic.MessageParam[] = [{ role: "user", content: "weather in Oslo?" }];
const call = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>';
const weather: Anthropic.Tool = {
  name: "get_weather",
  description: "the weather",
  input_schema: { type: "object", properties: { city: { type: "string" } } },
};
const hermes = { toolCallParser: "hermes", reasoningParser: "qwen3" };

function clientOf(server: TestServer, apiKey = "unused"): Anthropic {
  return new Anthropic({ baseURL: server.url, apiKey, maxRetries: 0 });
}

describe("messages through the Anthropic package", () => {
  it("answer with text, usage and a stop reason", async () => {
    await using server = await startTestServer({}, { cachedTokens: 16 });
    const answer = await clientOf(server).messages.create({ model, max_tokens, system: "be kind", messages });
    assert.match(answer.id, /^msg_[0-9a-f]{24}$/);
    assert.deepEqual(answer.content, [{ type: "text", text: "Hello, wörld 0!" }]);
    assert.deepEqual([answer.type, answer.role, answer.model], ["message", "assistant", model]);
    assert.deepEqual([answer.stop_reason, answer.stop_sequence], ["end_turn", null]);
    const promptTokens = server.model.engine.requests[0]?.promptTokens.length ?? 0;
    assert.equal(answer.usage.input_tokens + (answer.usage.cache_read_input_tokens ?? 0), promptTokens);
    assert.equal(answer.usage.output_tokens, 16);
    assert.deepEqual(
      server.model.rendered[0]?.messages.map(({ role, content }) => [role, content]),
      [
        ["system", "be kind"],
        ["user", "weather in Oslo?"],
      ],
    );
  });

  it("count tokens as they will be", async () => {
    await using server = await startTestServer();
    const client = clientOf(server);
    const { input_tokens } = await client.messages.countTokens({ model, messages, tools: [weather] });
    await client.messages.create({ model, max_tokens, messages, tools: [weather] });
    assert.equal(input_tokens, server.model.engine.requests[0]?.promptTokens.length);
  });

  it("say max_tokens when cut off", async () => {
    await using server = await startTestServer();
    const answer = await clientOf(server).messages.create({ model, max_tokens: 5, messages });
    assert.equal(answer.stop_reason, "max_tokens");
  });

  it("call tools, and take their results back", async () => {
    await using server = await startTestServer(hermes, {
      reply: (prompt) =>
        prompt.includes("12 degrees") ? "It is 12 degrees." : `<think>Hm.</think>One moment.${call}`,
    });
    const client = clientOf(server);
    const stream = client.messages.stream({ model, max_tokens, messages, tools: [weather] });
    const final = await stream.finalMessage();
    assert.equal(final.stop_reason, "tool_use");
    assert.deepEqual(
      final.content.map((block) => block.type),
      ["thinking", "text", "tool_use"],
    );
    const use = final.content.find((block) => block.type === "tool_use");
    assert.deepEqual([use?.name, use?.input], ["get_weather", { city: "Oslo" }]);
    const answer = await client.messages.create({
      model,
      max_tokens,
      tools: [weather],
      messages: [
        ...messages,
        { role: "assistant", content: final.content },
        {
          role: "user",
          content: [
            { type: "text", text: "thanks" },
            {
              type: "tool_result",
              tool_use_id: use?.id ?? "",
              content: [{ type: "text", text: "12 degrees" }],
            },
          ],
        },
      ],
    });
    assert.deepEqual(answer.content, [{ type: "text", text: "It is 12 degrees." }]);
    const [, assistant, tool, user] = server.model.rendered[1]?.messages ?? [];
    assert.equal(assistant?.reasoning_content, "Hm.");
    assert.deepEqual(tool, { role: "tool", content: "12 degrees", tool_call_id: use?.id });
    assert.equal(user?.content, "thanks");
  });

  it("hold strict tools to their schemas", async () => {
    await using server = await startTestServer(hermes);
    for (const strict of [true, false])
      await server.post("/v1/messages", { model, max_tokens, messages, tools: [{ ...weather, strict }] });
    const grammars = server.model.engine.requests.map(({ grammar }) => grammar !== undefined);
    assert.deepEqual(grammars, [true, false]);
  });

  for (const transcript of transcripts) {
    it(`stream to the message that is not streamed: ${transcript.format}, ${transcript.title}`, async () => {
      await using server = await startTestServer(
        { toolCallParser: transcript.format, reasoningParser: "none" },
        { reply: () => transcript.output, tokensPerStep: 3 },
      );
      const tools = transcriptTools.map(({ function: { name, parameters } }) => ({
        name,
        input_schema: { type: "object" as const, ...parameters },
      }));
      const body = { model, max_tokens: 2048, messages, tools };
      const whole = (await (await server.post("/v1/messages", body)).json()) as MessageAnswer;
      const events = [];
      for await (const event of await clientOf(server).messages.create({ ...body, stream: true }))
        events.push(event);
      assert.equal(events[0]?.type, "message_start");
      assert.equal(events.at(-1)?.type, "message_stop");
      const texts = whole.content.map(() => "");
      for (const event of events) {
        if (event.type !== "content_block_delta") continue;
        const { delta } = event;
        const piece =
          delta.type === "text_delta"
            ? delta.text
            : delta.type === "thinking_delta"
              ? delta.thinking
              : delta.type === "input_json_delta"
                ? delta.partial_json
                : "";
        texts[event.index] += piece;
      }
      const expected = whole.content.map((block) => {
        if (block.type === "text") return block.text;
        if (block.type === "thinking") return block.thinking;
        return block.octavo?.arguments ?? JSON.stringify(block.input);
      });
      const compact = whole.content.map((block, index) =>
        block.type === "tool_use" && block.octavo === undefined
          ? JSON.stringify(JSON.parse(texts[index] ?? ""))
          : texts[index],
      );
      assert.deepEqual(compact, expected);
    });
  }
});

describe("thinking", () => {
  const reply = (): string => "<think>\nLet me séé.\n</think>\n\nIt rains.";
  const enabled = { type: "enabled", budget_tokens: 100 } as const;

  it("has a budget, which the engine keeps to", async () => {
    await using server = await startTestServer(hermes, { reply });
    const client = clientOf(server);
    for (const thinking of [enabled, { type: "adaptive" }, { type: "disabled" }] as const)
      await client.messages.create({ model, max_tokens, messages, thinking });
    const budgets = server.model.engine.requests.map(({ thinking }) => thinking?.maxTokens);
    assert.deepEqual(budgets, [100, undefined, undefined]);
    const switches = server.model.rendered.map(({ variables }) => variables?.["enable_thinking"]);
    assert.deepEqual(switches, [true, true, false]);
    await client.messages.countTokens({ model, messages, thinking: enabled });
  });

  it("stands in blocks of its own, signed, streamed or not", async () => {
    await using server = await startTestServer(hermes, { reply, tokensPerStep: 5 });
    const client = clientOf(server);
    const body = { model, max_tokens, messages, thinking: enabled };
    const { content } = await client.messages.create(body);
    const [thought, text] = content;
    assert.ok(thought?.type === "thinking" && text?.type === "text");
    assert.deepEqual([thought.thinking, text.text], ["Let me séé.", "It rains."]);
    assert.match(thought.signature, /^[A-Za-z0-9+/]{43}=$/);
    assert.deepEqual((await client.messages.stream(body).finalMessage()).content, content);
    const kinds: string[] = [];
    for await (const event of await client.messages.create({ ...body, stream: true })) {
      if (!("index" in event) || event.index !== 0) continue;
      const kind = event.type === "content_block_delta" ? event.delta.type : event.type;
      if (kinds.at(-1) !== kind) kinds.push(kind);
    }
    assert.deepEqual(kinds, [
      "content_block_start",
      "thinking_delta",
      "signature_delta",
      "content_block_stop",
    ]);
    const hidden = await server.post("/v1/messages", {
      ...body,
      thinking: { ...enabled, display: "omitted" },
    });
    assert.deepEqual(((await hidden.json()) as MessageAnswer).content, [{ type: "text", text: "It rains." }]);
  });

  it("is refused by its name where the budget cannot be", async () => {
    const cases: readonly (readonly [object, RegExp])[] = [
      [{ type: "enabled" }, /thinking\.budget_tokens: .*nothing/],
      [{ ...enabled, budget_tokens: 0 }, /thinking\.budget_tokens/],
      [{ ...enabled, budget_tokens: "many" }, /thinking\.budget_tokens/],
      [{ ...enabled, budget_tokens: max_tokens }, /thinking\.budget_tokens: 1024 .*less than max_tokens/],
      [{ type: "disabled", budget_tokens: 9 }, /thinking\.budget_tokens: a budget goes with/],
      [{ type: "adaptive", budget_tokens: 9 }, /thinking\.budget_tokens: a budget goes with/],
      [{ type: "hard" }, /thinking/],
    ];
    await using server = await startTestServer(hermes, { reply });
    const refusal = async (at: TestServer, thinking: object): Promise<string> => {
      const response = await at.post("/v1/messages", { model, max_tokens, messages, thinking });
      assert.equal(response.status, 400);
      return ((await response.json()) as { error: { message: string } }).error.message;
    };
    for (const [thinking, message] of cases) assert.match(await refusal(server, thinking), message);
    assert.equal(server.model.engine.requests.length, 0);
    await using plain = await startTestServer({ reasoningParser: "none" }, { reply });
    assert.match(await refusal(plain, enabled), /^thinking\.budget_tokens: what ends this model's reasoning/);
  });
});

describe("failures of messages", () => {
  it("have Anthropic's shape, so that the package knows them", async () => {
    await using server = await startTestServer({ apiKeys: ["secret"] });
    const client = clientOf(server, "secret");
    await assert.rejects(client.messages.create({ model: "other", max_tokens, messages }), (error) => {
      assert.ok(error instanceof NotFoundError);
      assert.match(error.message, /not_found_error.*does not exist here/);
      return true;
    });
    await assert.rejects(clientOf(server, "wrong").messages.create({ model, max_tokens, messages }), {
      status: 401,
    });
    const image = { type: "image", source: { type: "url", url: "http://x/y.png" } };
    const refused = await server.post(
      "/v1/messages",
      { model, max_tokens, messages: [{ role: "user", content: [image] }] },
      { "x-api-key": "secret" },
    );
    assert.equal(refused.status, 400);
    const body = (await refused.json()) as { type: string; error: { type: string; message: string } };
    assert.deepEqual([body.type, body.error.type], ["error", "invalid_request_error"]);
    assert.match(body.error.message, /messages\[0\]\.content\[0\].*reads text only/);
  });

  it("in a stream are an error event", async () => {
    const error = new OctavoError("engine_failed", "the kernel stopped");
    await using server = await startTestServer({}, { failAfterSteps: { steps: 3, error } });
    const stream = clientOf(server).messages.stream({ model, max_tokens, messages });
    await assert.rejects(stream.finalMessage(), /the kernel stopped/);
  });
});
