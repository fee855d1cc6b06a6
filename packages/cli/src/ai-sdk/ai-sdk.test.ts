import assert from "node:assert/strict";
import { after, before, describe, it, test } from "node:test";
import { fileURLToPath } from "node:url";
import { LLM } from "@octavo/engine";
import { createServer, type OctavoServer } from "@octavo/server";
import {
  APICallError,
  embedMany,
  generateText,
  NoSuchModelError,
  Output,
  stepCountIs,
  streamText,
  tool,
  type ToolSet,
} from "ai";
import { z } from "zod";
import { createOctavo, type OctavoProvider } from "./index.js";

const mini = fileURLToPath(new URL("../../../../models/octavo-mini", import.meta.url));
const settings = { temperature: 0, seed: 1, maxRetries: 0 } as const;
const city = z.object({ city: z.string().max(20) });

/** The real SDK against the real model, in this process and behind a server: the same text. */
describe("the AI SDK's own provider", () => {
  let llm: LLM;
  let server: OctavoServer;
  const providers = new Map<string, OctavoProvider>();

  before(async () => {
    llm = await LLM.load(mini, { maxModelLen: 1024, numThreads: 1 });
    const config = {
      port: 0,
      logLevel: "silent",
      servedModelNames: ["octavo-mini"],
      apiKeys: ["k"],
    } as const;
    server = createServer({ model: llm, config });
    const { url } = await server.listen();
    providers.set("a server", createOctavo({ baseURL: `${url}/v1/`, apiKey: "k" }));
    providers.set("a model in this process", createOctavo({ llm, names: ["octavo-mini"] }));
  });
  after(async () => {
    await server.close();
    await llm[Symbol.asyncDispose]();
  });

  for (const name of ["a server", "a model in this process"]) {
    const modelOf = (): ReturnType<OctavoProvider> => {
      const provider = providers.get(name);
      assert.ok(provider);
      return provider("octavo-mini");
    };

    it(`generates text, and streams the same text, from ${name}`, async () => {
      const request = { ...settings, model: modelOf(), prompt: "Hello!", maxOutputTokens: 24 };
      const whole = await generateText(request);
      assert.notEqual(whole.text, "");
      const direct = await llm.chat([{ role: "user", content: "Hello!" }], { temperature: 0, maxTokens: 24 });
      assert.equal(whole.text, direct.text);
      assert.equal(whole.usage.outputTokens, direct.usage.completionTokens);
      assert.equal(whole.usage.inputTokens, direct.usage.promptTokens);
      const stream = streamText(request);
      const pieces: string[] = [];
      for await (const piece of stream.textStream) pieces.push(piece);
      assert.equal(pieces.join(""), whole.text);
      assert.ok(pieces.length > 1);
      assert.equal(await stream.finishReason, whole.finishReason);
      assert.equal((await stream.usage).outputTokens, whole.usage.outputTokens);
    });

    for (const isStreamed of [false, true])
      it(`runs tools and gives their results back, from ${name}${isStreamed ? ", streamed" : ""}`, async () => {
        const asked: string[] = [];
        const tools: ToolSet = {
          get_weather: tool({
            description: "Get the current weather in a city.",
            inputSchema: city,
            execute: (input) => {
              asked.push(input.city);
              return { temperature: 12, condition: "rain" };
            },
          }),
        };
        const request = {
          ...settings,
          model: modelOf(),
          prompt: "What is the weather in Oslo?",
          tools,
          stopWhen: stepCountIs(3),
          maxOutputTokens: 128,
        };
        const result = isStreamed ? streamText(request) : await generateText(request);
        const steps = await result.steps;
        assert.notEqual(await result.text, "");
        assert.deepEqual(asked, ["Oslo"]);
        assert.deepEqual(
          steps.map(({ finishReason }) => finishReason),
          ["tool-calls", "stop"],
        );
      });

    it(`calls a required tool of ${name}`, async () => {
      const { toolCalls } = await generateText({
        ...settings,
        model: modelOf(),
        prompt: "Hello!",
        tools: { get_weather: tool({ description: "Get the weather.", inputSchema: city }) },
        toolChoice: { type: "tool", toolName: "get_weather" },
        maxOutputTokens: 128,
      });
      assert.equal(toolCalls.length, 1);
      city.parse(toolCalls[0]?.input);
    });

    it(`answers with objects under a schema, streamed as well, from ${name}`, async () => {
      const schema = z.object({ name: z.string().max(12), kind: z.enum(["person", "place"]) });
      const request = {
        ...settings,
        model: modelOf(),
        prompt: "Describe a person.",
        output: Output.object({ schema }),
        maxOutputTokens: 200,
      };
      const whole = await generateText(request);
      schema.parse(whole.output);
      let last: unknown;
      for await (const partial of streamText(request).partialOutputStream) last = partial;
      assert.deepEqual(last, whole.output);
    });

    it(`embeds with ${name}`, async () => {
      const provider = providers.get(name);
      assert.ok(provider);
      const model = provider.embeddingModel("octavo-mini");
      const { embeddings } = await embedMany({ model, values: ["one", "two"], maxRetries: 0 });
      const direct = await llm.embed("two");
      assert.equal(embeddings.length, 2);
      assert.deepEqual(embeddings[1]?.map(Math.fround), [...direct]);
    });

    it(`hands on options of Octavo's own to ${name}`, async () => {
      const own = name === "a server" ? { ignore_eos: true } : { ignoreEos: true };
      const { usage, finishReason } = await generateText({
        ...settings,
        model: modelOf(),
        prompt: "Hello!",
        maxOutputTokens: 60,
        providerOptions: { octavo: own },
      });
      assert.equal(usage.outputTokens, 60);
      assert.equal(finishReason, "length");
    });

    it(`ends a call of ${name} when it is aborted`, async () => {
      const abort = new AbortController();
      const own = name === "a server" ? { ignore_eos: true } : { ignoreEos: true };
      const stream = streamText({
        ...settings,
        model: modelOf(),
        prompt: "Hello!",
        maxOutputTokens: 900,
        providerOptions: { octavo: own },
        abortSignal: abort.signal,
      });
      const kinds: string[] = [];
      for await (const part of stream.fullStream) {
        kinds.push(part.type);
        if (part.type === "text-delta") abort.abort();
      }
      assert.ok(kinds.includes("abort"), kinds.join(" "));
    });

    it(`says what is wrong with a call of ${name}`, async () => {
      const tooLong = generateText({ ...settings, model: modelOf(), prompt: "x ".repeat(4000) });
      await assert.rejects(tooLong, (error) => {
        assert.match((error as Error).message, /1024 tokens/);
        if (name === "a server") assert.ok(APICallError.isInstance(error) && error.statusCode === 400);
        return true;
      });
      const image = { type: "image" as const, image: new Uint8Array([1]), mediaType: "image/png" };
      await assert.rejects(
        generateText({ ...settings, model: modelOf(), messages: [{ role: "user", content: [image] }] }),
        /models are served as text/,
      );
    });
  }

  it("knows what it has no model for", async () => {
    const provider = providers.get("a model in this process");
    assert.throws(() => provider?.("nobody"), NoSuchModelError);
    assert.throws(() => provider?.imageModel("octavo-mini"), NoSuchModelError);
    const elsewhere = createOctavo({ baseURL: "http://127.0.0.1:9/v1" })("x");
    await assert.rejects(generateText({ ...settings, model: elsewhere, prompt: "?" }), (error) => {
      assert.ok(APICallError.isInstance(error) && error.isRetryable);
      return true;
    });
  });
});

/** A provider whose server answers with these events. */
function scripted(...events: readonly (object | "[DONE]")[]): OctavoProvider {
  const text = events
    .map((event) => `data: ${typeof event === "string" ? event : JSON.stringify(event)}\n\n`)
    .join("");
  return createOctavo({ fetch: () => Promise.resolve(new Response(text)) });
}

const chunk = (delta: object, finish: string | null = null): object => ({
  id: "c-1",
  model: "m",
  choices: [{ index: 0, delta, finish_reason: finish }],
});

test("reasoning, text and several calls are separated, in order", async () => {
  const call = (index: number, part: object): object => ({ tool_calls: [{ index, ...part }] });
  const provider = scripted(
    chunk({ role: "assistant" }),
    chunk({ reasoning: "Hm, " }),
    chunk({ reasoning: "two." }),
    chunk({ content: "I look." }),
    chunk(call(0, { id: "a", function: { name: "look", arguments: '{"at"' } })),
    chunk(call(0, { function: { arguments: ':"x"}' } })),
    chunk(call(1, { id: "b", function: { name: "stop", arguments: "" } })),
    chunk({}, "tool_calls"),
    {
      choices: [],
      usage: {
        prompt_tokens: 9,
        completion_tokens: 7,
        prompt_tokens_details: { cached_tokens: 4 },
        completion_tokens_details: { reasoning_tokens: 3 },
      },
      octavo: { serving_record: { cached_tokens: 4 } },
    },
    "[DONE]",
  );
  const tools: ToolSet = {
    look: tool({ inputSchema: z.object({ at: z.string() }) }),
    stop: tool({ inputSchema: z.object({}) }),
  };
  const result = await generateText({ model: provider("m"), prompt: "?", tools });
  assert.equal(result.reasoningText, "Hm, two.");
  assert.equal(result.text, "I look.");
  assert.deepEqual(
    result.toolCalls.map(({ toolCallId, toolName, input }) => [toolCallId, toolName, input]),
    [
      ["a", "look", { at: "x" }],
      ["b", "stop", {}],
    ],
  );
  assert.equal(result.finishReason, "tool-calls");
  assert.equal(result.response.id, "c-1");
  assert.equal(result.usage.inputTokenDetails.cacheReadTokens, 4);
  assert.equal(result.usage.outputTokenDetails.reasoningTokens, 3);
  assert.deepEqual(result.providerMetadata?.["octavo"], { serving_record: { cached_tokens: 4 } });
});

test("a stream that fails or ends too soon is an error, and what came before it is kept", async () => {
  for (const [last, message] of [
    [{ error: { message: "out of memory" } }, /out of memory/],
    [chunk({ content: "" }), /lost in the middle/],
  ] as const) {
    const model = scripted(chunk({ content: "Once" }), last)("m");
    await assert.rejects(generateText({ model, prompt: "?", maxRetries: 0 }), { message });
    const seen: string[] = [];
    const stream = streamText({ model, prompt: "?", maxRetries: 0, onError: () => undefined });
    for await (const part of stream.fullStream) if (part.type === "text-delta") seen.push(part.text);
    assert.deepEqual(seen, ["Once"]);
    assert.equal(await stream.finishReason, "error");
  }
});
