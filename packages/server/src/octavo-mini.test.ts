import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import OpenAI from "openai";
import { zodFunction, zodResponseFormat } from "openai/helpers/zod";
import { z } from "zod";
import { type OctavoMini, startOctavoMini } from "./testing/octavo-mini.js";

/** The embedded model, which speaks hermes, through the whole server: nothing is scripted. */
describe("octavo-mini calls tools", () => {
  let octavoMini: OctavoMini;
  let client: OpenAI;

  before(async () => {
    octavoMini = await startOctavoMini({ maxModelLen: 1024 });
    ({ client } = octavoMini);
  });
  after(async () => {
    await octavoMini[Symbol.asyncDispose]();
  });

  it("through runTools, from the question to the answer", async () => {
    const asked: string[] = [];
    const runner = client.chat.completions.runTools({
      model: octavoMini.llm.name,
      temperature: 0,
      max_tokens: 128,
      stream: true,
      messages: [{ role: "user", content: "What is the weather in Oslo?" }],
      tools: [
        {
          type: "function",
          function: {
            name: "get_weather",
            description: "Get the current weather in a city.",
            parameters: {
              type: "object",
              properties: { city: { type: "string", description: "The city." } },
              required: ["city"],
            },
            parse: (text: string) => JSON.parse(text) as { city: string },
            function: ({ city }: { city: string }) => {
              asked.push(city);
              return { temperature: 12, condition: "rain" };
            },
          },
        },
      ],
    });
    const answer = await runner.finalContent();
    assert.deepEqual(asked, ["Oslo"]);
    assert.notEqual(answer ?? "", "");
  });

  it("because it must, with arguments that match the schema", async () => {
    const city = { type: "string", enum: ["Lima", "Quito"] };
    const tools = ["get_weather", "get_time"].map((name) => ({
      type: "function" as const,
      function: { name, parameters: { type: "object", properties: { city }, required: ["city"] } },
    }));
    const messages = [{ role: "user" as const, content: "Hello!" }];
    const body = {
      model: octavoMini.llm.name,
      max_tokens: 128,
      messages,
      tools,
      temperature: 1,
      seed: 3,
      n: 4,
    };
    for (const tool_choice of ["required", { type: "function", function: { name: "get_time" } }] as const) {
      const { choices } = await client.chat.completions.create({
        ...body,
        tool_choice,
        parallel_tool_calls: false,
      });
      for (const { message } of choices) {
        const [call] = message.tool_calls ?? [];
        assert.ok(call?.type === "function");
        if (tool_choice !== "required") assert.equal(call.function.name, "get_time");
        assert.ok(city.enum.includes((JSON.parse(call.function.arguments) as { city: string }).city));
        assert.equal(message.content, null);
      }
    }
  });

  it("with a text that follows a custom tool's grammar", async () => {
    const expression = new RegExp(String.raw`^"[a-z]{1,8}"( [+-] "[a-z]{1,8}"){1,2}$`);
    const definition = 'start: NAME (" " ("+" | "-") " " NAME)~1..2\nNAME: "\\"" /[a-z]{1,8}/ "\\""';
    const { choices } = await client.chat.completions.create({
      model: octavoMini.llm.name,
      max_tokens: 128,
      messages: [{ role: "user", content: "Hello!" }],
      tools: [
        {
          type: "custom",
          custom: { name: "calculate", format: { type: "grammar", grammar: { syntax: "lark", definition } } },
        },
      ],
      tool_choice: { type: "custom", custom: { name: "calculate" } },
      temperature: 1,
      seed: 3,
      n: 4,
    });
    for (const { message } of choices) {
      const [call] = message.tool_calls ?? [];
      assert.ok(call?.type === "custom");
      assert.match(call.custom.input, expression);
    }
  });

  it("that parse() reads by their zod schema, strict ones left to the model", async () => {
    const parameters = z.object({ city: z.string() });
    const { choices } = await client.chat.completions.parse({
      model: octavoMini.llm.name,
      temperature: 0,
      max_tokens: 128,
      messages: [{ role: "user", content: "What is the weather in Oslo?" }],
      tools: [
        zodFunction({ name: "get_weather", description: "Get the current weather in a city.", parameters }),
      ],
    });
    const call = choices[0]?.message.tool_calls?.[0];
    const made = parameters.parse(call?.function.parsed_arguments);
    assert.equal(made.city, "Oslo");
  });

  it("and writes JSON under a zod schema", async () => {
    const schema = z.object({ answer: z.enum(["yes", "no"]), count: z.int().min(0).max(99) });
    const { choices } = await client.chat.completions.parse({
      model: octavoMini.llm.name,
      temperature: 0,
      max_tokens: 64,
      messages: [{ role: "user", content: "Hello!" }],
      response_format: zodResponseFormat(schema, "reply"),
    });
    assert.ok(["yes", "no"].includes(choices[0]?.message.parsed?.answer ?? ""));
  });
});

describe("a prompt that cannot fit", () => {
  it("is refused with both counts before it is tokenised to its end, unless it is truncated", async () => {
    await using octavoMini = await startOctavoMini({ maxModelLen: 1024 });
    const { client } = octavoMini;
    const model = octavoMini.llm.name;
    const tooLong = {
      status: 400,
      code: 400,
      message: /at least \d+ tokens; at most 1024 /,
    };
    const prompts = ["word ".repeat(20_000), " ".repeat(5_000_000)];
    for (const prompt of prompts) {
      const messages = [{ role: "user" as const, content: prompt }];
      await assert.rejects(client.completions.create({ model, prompt }), { ...tooLong, param: "prompt" });
      const chat = client.chat.completions.create({ model, messages });
      await assert.rejects(chat, { ...tooLong, param: "messages" });
      await assert.rejects(client.embeddings.create({ model, input: prompt }), {
        ...tooLong,
        param: "input",
      });
    }
    const truncated = { model, prompt: prompts[0]!, max_tokens: 1, truncate_prompt_tokens: 5 };
    assert.equal((await client.completions.create(truncated)).usage?.prompt_tokens, 5);
  });
});
