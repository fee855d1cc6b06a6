import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createSseDecoder, type ChatCompletionChunk } from "@octavo/protocol";
import { messageOf } from "@octavo/engine/chat";
import * as fc from "fast-check";
import type OpenAI from "openai";
import { startTestServer } from "../testing/test-server.js";

const model = "fake/model";
const messages = [{ role: "user" as const, content: "run it" }];
const code = 'print("é 😀")\n# done \\o/';
const hermes = { toolCallParser: "hermes", reasoningParser: "none" };
const call = callOf("python", { input: code });
const definition = 'start: "print(" /"[^"]*"/ ")" /[^]*/';
const python: OpenAI.ChatCompletionCustomTool = {
  type: "custom",
  custom: { name: "python", description: "Runs Python.", format: { type: "text" } },
};
const held: OpenAI.ChatCompletionCustomTool = {
  type: "custom",
  custom: { name: "python", format: { type: "grammar", grammar: { syntax: "lark", definition } } },
};
const weather: OpenAI.ChatCompletionFunctionTool = {
  type: "function",
  function: { name: "get_weather", parameters: { type: "object", properties: {} } },
};
const pythonItem: OpenAI.Responses.CustomTool = { type: "custom", name: "python" };
const heldItem: OpenAI.Responses.CustomTool = {
  type: "custom",
  name: "python",
  format: { type: "grammar", syntax: "regex", definition: "print[^]*" },
};

function callOf(name: string, args: object): string {
  return `<tool_call>\n{"name": "${name}", "arguments": ${JSON.stringify(args)}}\n</tool_call>`;
}

describe("custom tools in chats, through the openai package", () => {
  it("are shown to the model as functions of one text, and called with that text", async () => {
    await using server = await startTestServer(hermes, { reply: () => call + callOf("get_weather", {}) });
    const answer = await server.client.chat.completions.create({ model, messages, tools: [python, weather] });
    const [choice] = answer.choices;
    assert.equal(choice?.finish_reason, "tool_calls");
    const [made, other] = choice?.message.tool_calls ?? [];
    assert.match(made?.id ?? "", /^call_/);
    assert.deepEqual(
      { ...made, id: "" },
      { id: "", type: "custom", custom: { name: "python", input: code } },
    );
    assert.equal(other?.type, "function");
    const input = { type: "string", description: "Any text." };
    assert.deepEqual(server.model.rendered[0]?.tools?.[0], {
      type: "function",
      function: {
        name: "python",
        description: "Runs Python.",
        parameters: { type: "object", properties: { input }, required: ["input"] },
      },
    });
    assert.equal(server.model.engine.requests[0]?.grammar, undefined);
  });

  it("stream to the answer that is not streamed, for every cut", async () => {
    for (const tokensPerStep of [1, 2, 3, 7, 50]) {
      await using server = await startTestServer(hermes, { reply: () => `Now.${call}`, tokensPerStep });
      const body = { messages, tools: [python] };
      const response = await server.post("/v1/chat/completions", { ...body, stream: true });
      const decoder = createSseDecoder();
      const deltas = [];
      for (const { data } of decoder.push(new Uint8Array(await response.arrayBuffer())))
        if (data !== "[DONE]")
          deltas.push(...(JSON.parse(data) as ChatCompletionChunk).choices.map((choice) => choice.delta));
      const { content, tool_calls: calls } = messageOf("assistant", "", deltas);
      assert.equal(content, "Now.");
      assert.deepEqual(
        calls?.map((made) => (made.type === "custom" ? made.custom : made)),
        [{ name: "python", input: code }],
      );
      assert.ok(calls?.every((made) => made.id.startsWith("call_")));
    }
  });

  it("take calls and results back, as the openai package sends them", async () => {
    await using server = await startTestServer(hermes, {
      reply: (prompt) => (prompt.includes("it printed") ? "Done." : call),
    });
    const first = await server.client.chat.completions.create({ model, messages, tools: [python] });
    const { message } = first.choices[0]!;
    const [made] = message.tool_calls ?? [];
    const result = { role: "tool" as const, tool_call_id: made?.id ?? "", content: "it printed" };
    const history = [...messages, message, result];
    const second = await server.client.chat.completions.create({
      model,
      messages: history,
      tools: [python],
    });
    assert.equal(second.choices[0]?.message.content, "Done.");
    assert.deepEqual(server.model.rendered[1]?.messages[1]?.tool_calls, [
      { id: made?.id, type: "function", function: { name: "python", arguments: { input: code } } },
    ]);
  });

  it("hold their format whoever chooses, and the choices name them", async () => {
    await using server = await startTestServer(hermes, { reply: () => call });
    const named = { type: "custom" as const, custom: { name: "python" } };
    const choices = [
      "auto",
      "required",
      named,
      { type: "allowed_tools", allowed_tools: { mode: "required", tools: [named] } },
    ] as const;
    for (const choice of choices) {
      const answer = await server.client.chat.completions.create({
        model,
        messages,
        tools: [weather, held],
        tool_choice: choice as never,
      });
      assert.equal(answer.choices[0]?.message.tool_calls?.[0]?.type, "custom");
    }
    for (const { grammar } of server.model.engine.requests) {
      const takes = (text: string): boolean => {
        const matcher = grammar!.start();
        const tokens = server.model.tokenizer.encode(text, { addSpecialTokens: false });
        return [...tokens].every((token) => matcher.accept(token));
      };
      assert.ok(takes(callOf("python", { input: 'print("x")\n' })));
      assert.ok(!takes(callOf("python", { input: "print(x)" })));
    }
  });

  it("deliver arguments of another shape as written, and say so", async () => {
    await using server = await startTestServer(hermes, { reply: () => callOf("python", { code: "1" }) });
    const answer = await server.client.chat.completions.create({ model, messages, tools: [python] });
    const [made] = answer.choices[0]?.message.tool_calls ?? [];
    assert.equal(made?.type === "custom" && made.custom.input, '{"code":"1"}');
    assert.match(
      (made as unknown as { octavo: { invalid_arguments: string } }).octavo.invalid_arguments,
      /no text/,
    );
  });

  it("are refused where they are wrong, by the field at fault", async () => {
    await using server = await startTestServer(hermes);
    const grammar = (fields: object): object => ({
      type: "custom",
      custom: { name: "x", format: { type: "grammar", grammar: fields } },
    });
    const cases: readonly (readonly [object, string])[] = [
      [{ tools: [{ type: "custom", custom: {} }] }, "tools[0].custom.name"],
      [{ tools: [{ type: "web_search" }] }, "tools[0].type"],
      [{ tools: [grammar({ syntax: "ebnf", definition: "x" })] }, "tools[0].custom.format.grammar.syntax"],
      [{ tools: [grammar({ syntax: "lark", definition: "start: nope" })] }, "tools"],
      [{ tools: [python, { ...weather, function: { name: "python" } }] }, "tools[1].function.name"],
      [
        { tools: [python], tool_choice: { type: "custom", custom: { name: "other" } } },
        "tool_choice.custom.name",
      ],
      [
        { tools: [python], tool_choice: { type: "function", function: { name: "python" } } },
        "tool_choice.function.name",
      ],
    ];
    for (const [fields, param] of cases) {
      const response = await server.post("/v1/chat/completions", { messages, ...fields });
      const { error } = (await response.json()) as { error: { message: string; param: string } };
      assert.deepEqual([response.status, error.param], [400, param], error.message);
    }
    await using untagged = await startTestServer({ toolCallParser: "none" });
    const response = await untagged.post("/v1/chat/completions", { messages, tools: [held] });
    const { error } = (await response.json()) as { error: { param: string } };
    assert.deepEqual([response.status, error.param], [400, "tools[0].custom.format"]);
  });
});

describe("custom tools in responses, through the openai package", () => {
  it("are called with a text that streams, and take the result back", async () => {
    await using server = await startTestServer(hermes, {
      reply: (prompt) => (prompt.includes("it printed") ? "Done." : `Now.${call}`),
      tokensPerStep: 3,
    });
    const tools = [pythonItem];
    const stream = server.client.responses.stream({ model, input: "run it", tools });
    const deltas: string[] = [];
    const done: string[] = [];
    for await (const event of stream) {
      if (event.type === "response.custom_tool_call_input.delta") deltas.push(event.delta);
      if (event.type === "response.custom_tool_call_input.done") done.push(event.input);
    }
    assert.ok(deltas.length > 3);
    assert.deepEqual([deltas.join(""), done], [code, [code]]);
    const { output, id } = await stream.finalResponse();
    const made = output.find((item) => item.type === "custom_tool_call");
    assert.match(made?.id ?? "", /^ctc_/);
    assert.deepEqual([made?.name, made?.input], ["python", code]);
    const result = {
      type: "custom_tool_call_output" as const,
      call_id: made?.call_id ?? "",
      output: "it printed",
    };
    const byId = await server.client.responses.create({
      model,
      previous_response_id: id,
      input: [result],
      tools,
    });
    const sent = output as OpenAI.Responses.ResponseInputItem[];
    const byItems = await server.client.responses.create({
      model,
      input: [{ role: "user", content: "run it" }, ...sent, result],
      tools,
    });
    assert.deepEqual([byId.output_text, byItems.output_text], ["Done.", "Done."]);
    const [, second, third] = server.model.rendered;
    assert.deepEqual(second?.messages, third?.messages);
    assert.deepEqual(second?.messages[1]?.tool_calls, [
      { id: made?.call_id, type: "function", function: { name: "python", arguments: { input: code } } },
    ]);
  });

  it("hold their format whoever chooses, and are echoed as sent", async () => {
    await using server = await startTestServer(hermes, { reply: () => call });
    const named = { type: "custom" as const, name: "python" };
    for (const tool_choice of [
      "auto" as const,
      named,
      { type: "allowed_tools" as const, mode: "required" as const, tools: [{ ...named }] },
    ]) {
      const answer = await server.client.responses.create({
        model,
        input: "run it",
        tools: [heldItem],
        tool_choice,
      });
      assert.equal(answer.output[0]?.type, "custom_tool_call");
      assert.deepEqual([answer.tools, answer.tool_choice], [[heldItem], tool_choice]);
    }
    for (const { grammar } of server.model.engine.requests) assert.ok(grammar !== undefined);
  });

  it("give random texts back whole", async () => {
    let text = "";
    await using server = await startTestServer(hermes, {
      reply: () => callOf("python", { input: text }),
      tokensPerStep: 5,
    });
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: "grapheme", maxLength: 20 }), async (random) => {
        text = random;
        const answer = await server.client.responses.create({ model, input: "x", tools: [pythonItem] });
        const [made] = answer.output;
        assert.equal(made?.type === "custom_tool_call" && made.input, random);
      }),
      { numRuns: 40, seed: 3 },
    );
  });
});
