import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { tool } from "../chat/tool.js";
import { LLM } from "./llm.js";

const octavoMini = fileURLToPath(new URL("../../../../models/octavo-mini", import.meta.url));
const asked = [{ role: "user", content: "What is the weather in Paris?" }];
const greedy = { temperature: 0, maxTokens: 80 };
const weather = {
  name: "get_weather",
  description: "Get the current weather in a city",
  parameters: z.object({ city: z.string() }),
};

describe("chat of the library", () => {
  let llm: LLM;
  before(async () => {
    llm = await LLM.load(octavoMini, { maxModelLen: 1024, numThreads: 1 });
  });
  after(() => llm[Symbol.asyncDispose]());

  test("calls are parsed; the answer has no markup", async () => {
    const { text, toolCalls, sequences } = await llm.chat(asked, { ...greedy, tools: [weather] });
    assert.equal(text, "");
    const [call] = toolCalls;
    assert.deepEqual(
      [call?.name, call?.arguments, call?.problem],
      ["get_weather", { city: "Paris" }, undefined],
    );
    assert.equal(sequences[0]?.toolCalls.length, 1);
  });

  test("tools are run, their results answered, and streams say the same", async () => {
    const cities: string[] = [];
    const run = ({ city }: { city: string }): object => {
      cities.push(city);
      return { celsius: 21 };
    };
    const tools = [tool({ ...weather, run })];
    const generation = llm.chat(asked, { ...greedy, tools });
    let text = "";
    for await (const delta of generation) {
      text += delta.text;
      assert.doesNotMatch(delta.text, /tool_call|</);
    }
    const result = await generation;
    assert.deepEqual(cities, ["Paris"]);
    assert.deepEqual(
      result.messages.map(({ role }) => role),
      ["assistant", "tool", "assistant"],
    );
    assert.equal(result.messages[1]?.content, '{"celsius":21}');
    assert.equal(text, result.text);
    assert.ok(result.text.trim().length > 0 && result.toolCalls.length === 0);
  });

  test("a tool that fails is answered with its error; the bound ends the loop with calls that were not run", async () => {
    const failing = tool({
      ...weather,
      run() {
        throw new TypeError("no station");
      },
    });
    const { messages } = await llm.chat(asked, { ...greedy, tools: [failing] });
    assert.equal(messages[1]?.content, '{"error":"no station"}');
    let runs = 0;
    const never = tool({ ...weather, run: () => (runs += 1) });
    const bounded = await llm.chat(asked, { ...greedy, tools: [never], maxRounds: 1 });
    assert.equal(runs, 0);
    assert.equal(bounded.toolCalls.length, 1);
    const checked = tool({
      ...weather,
      parameters: z.object({ city: z.string().refine(() => false, "unknown") }),
      run: () => 1,
    });
    const refused = await llm.chat(asked, { ...greedy, tools: [checked], maxRounds: 2 });
    assert.equal(refused.messages[1]?.content, '{"error":"invalid arguments: city: unknown"}');
  });

  test("an abort while a tool runs ends the generation", async () => {
    const controller = new AbortController();
    const tools = [tool({ ...weather, run: () => controller.abort() })];
    await assert.rejects(llm.chat(asked, { ...greedy, tools, signal: controller.signal }).result(), {
      code: "request_cancelled",
    });
  });

  test("objects have the schema's type, or say why not", async () => {
    const schema = z.object({ city: z.enum(["Oslo", "Paris"]), degrees: z.number().int().min(0).max(40) });
    const { object } = await llm.object(schema, "The weather of Paris as JSON.", greedy);
    const degrees: number = object.degrees;
    assert.ok(Number.isInteger(degrees) && schema.safeParse(object).success);
    const plain = await llm.object(
      { type: "object", properties: { a: { type: "boolean" } }, required: ["a"] },
      "JSON",
      greedy,
    );
    assert.equal(typeof (plain.object as { a: unknown }).a, "boolean");
    await assert.rejects(llm.object(schema, "JSON", { temperature: 0, maxTokens: 2 }), {
      code: "output_invalid",
      message: /cut off/,
    });
    await assert.rejects(
      llm.object(
        schema.refine(() => false, "never"),
        "JSON",
        greedy,
      ),
      {
        code: "output_invalid",
        message: /never/,
      },
    );
  });

  test("a wrong option names itself", async () => {
    const attempt = (options: object) => async () => llm.chat(asked, options);
    await assert.rejects(attempt({ tempurature: 0 }), {
      code: "invalid_option",
      message: /did you mean temperature/,
    });
    await assert.rejects(attempt({ constraint: { type: "json_object" } }), {
      code: "invalid_option",
      param: "constraint.kind",
      message: /called kind, not type/,
    });
    await assert.rejects(attempt({ tools: [{ name: "two words" }] }), {
      code: "invalid_option",
      param: "tools[0].name",
    });
    await assert.rejects(attempt({ maxRounds: 0 }), { code: "invalid_option", param: "maxRounds" });
    await assert.rejects(attempt({ tools: [weather], toolChoice: { name: "other" } }), {
      code: "invalid_request",
    });
    await assert.rejects(async () => llm.embed("x", { poling: "mean" } as object), {
      code: "invalid_option",
    });
  });
});
