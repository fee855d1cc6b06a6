import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import {
  APICallError,
  embedMany,
  generateText,
  Output,
  stepCountIs,
  streamText,
  tool,
  type ToolSet,
} from "ai";
import { z } from "zod";
import { type OctavoMini, startOctavoMini } from "./testing/octavo-mini.js";

/** The embedded model behind the Vercel AI SDK's provider for OpenAI-compatible servers. */
describe("the Vercel AI SDK", () => {
  let octavoMini: OctavoMini;
  let provider: ReturnType<typeof createOpenAICompatible>;

  before(async () => {
    octavoMini = await startOctavoMini(
      { maxModelLen: 1024 },
      { servedModelNames: ["octavo-mini"], pooling: "mean" },
    );
    const { url } = octavoMini;
    provider = createOpenAICompatible({
      name: "octavo",
      baseURL: `${url}/v1`,
      supportsStructuredOutputs: true,
      includeUsage: true,
    });
  });
  after(async () => {
    await octavoMini[Symbol.asyncDispose]();
  });

  const settings = { temperature: 0, seed: 1, maxRetries: 0 } as const;
  const city = z.object({ city: z.string().max(20) });

  function weatherTools(asked: string[]): ToolSet {
    return {
      get_weather: tool({
        description: "Get the current weather in a city.",
        inputSchema: city,
        execute: (input) => {
          asked.push(input.city);
          return { temperature: 12, condition: "rain" };
        },
      }),
    };
  }

  it("generates text, and streams the same text", async () => {
    const request = { ...settings, model: provider("octavo-mini"), prompt: "Hello!", maxOutputTokens: 24 };
    const whole = await generateText(request);
    assert.notEqual(whole.text, "");
    assert.ok((whole.usage.outputTokens ?? 0) > 0);
    const stream = streamText(request);
    let text = "";
    for await (const piece of stream.textStream) text += piece;
    assert.equal(text, whole.text);
    assert.equal(await stream.finishReason, whole.finishReason);
    assert.deepEqual((await stream.usage).outputTokens, whole.usage.outputTokens);
  });

  it("completes prompts, and streams the same", async () => {
    const request = {
      ...settings,
      model: provider.completionModel("octavo-mini"),
      prompt: "One, two,",
      maxOutputTokens: 12,
    };
    const { text } = await generateText(request);
    let streamed = "";
    for await (const piece of streamText(request).textStream) streamed += piece;
    assert.equal(streamed, text);
  });

  for (const isStreamed of [false, true]) {
    it(`runs tools and gives their results back${isStreamed ? ", streamed" : ""}`, async () => {
      const asked: string[] = [];
      const request = {
        ...settings,
        model: provider("octavo-mini"),
        prompt: "What is the weather in Oslo?",
        tools: weatherTools(asked),
        stopWhen: stepCountIs(3),
        maxOutputTokens: 128,
      };
      let text: string;
      let numSteps: number;
      if (isStreamed) {
        const result = streamText(request);
        text = await result.text;
        numSteps = (await result.steps).length;
      } else {
        const result = await generateText(request);
        ({ text } = result);
        numSteps = result.steps.length;
      }
      assert.deepEqual(asked, ["Oslo"]);
      assert.equal(numSteps, 2);
      assert.notEqual(text, "");
    });
  }

  it("calls a required tool", async () => {
    const { toolCalls } = await generateText({
      ...settings,
      model: provider("octavo-mini"),
      prompt: "Hello!",
      tools: { get_weather: tool({ description: "Get the weather.", inputSchema: city }) },
      toolChoice: { type: "tool", toolName: "get_weather" },
      maxOutputTokens: 128,
    });
    assert.equal(toolCalls.length, 1);
    city.parse(toolCalls[0]?.input);
  });

  it("generates objects under a zod schema, streamed as well", async () => {
    const schema = z.object({
      name: z.string().max(12),
      age: z.int().min(0).max(130),
      kind: z.enum(["person", "place"]),
    });
    const request = {
      ...settings,
      model: provider("octavo-mini"),
      prompt: "Describe a person.",
      output: Output.object({ schema }),
      maxOutputTokens: 200,
    };
    const whole = await generateText(request);
    schema.parse(whole.output);
    const stream = streamText(request);
    let last: unknown;
    for await (const partial of stream.partialOutputStream) last = partial;
    assert.deepEqual(last, whole.output);
    const listed = await generateText({ ...request, output: Output.choice({ options: ["yes", "no"] }) });
    assert.ok(["yes", "no"].includes(listed.output));
  });

  it("embeds", async () => {
    const model = provider.embeddingModel("octavo-mini");
    const { embeddings } = await embedMany({ model, values: ["one", "two"], maxRetries: 0 });
    assert.equal(embeddings.length, 2);
    assert.ok(embeddings.every(({ length }) => length === embeddings[0]?.length));
  });

  it("reports the server's errors", async () => {
    const request = { ...settings, model: provider("octavo-mini"), prompt: "x ".repeat(4000) };
    await assert.rejects(generateText(request), (error) => {
      assert.ok(APICallError.isInstance(error));
      assert.equal(error.statusCode, 400);
      assert.match(error.message, /1024 tokens/);
      return true;
    });
  });
});
