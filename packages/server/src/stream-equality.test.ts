import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import { TestRandom } from "@octavo/text/testing/random";
import OpenAI from "openai";
import { type OctavoMini, startOctavoMini } from "./testing/octavo-mini.js";

const numRequests = 24;

/**
 * The same request twice, streamed and not, over a real model: promise 1 makes the answers the same tokens, so what a
 * stream's deltas add up to has to be the whole answer byte for byte.
 */
describe("the deltas of a stream add up to the answer that is not streamed", () => {
  let octavoMini: OctavoMini;
  let client: OpenAI;
  let anthropic: Anthropic;

  before(async () => {
    octavoMini = await startOctavoMini(
      { maxModelLen: 512, maxNumSeqs: 16, numThreads: 2 },
      { servedModelNames: ["octavo-mini"] },
    );
    ({ client } = octavoMini);
    const { url } = octavoMini;
    anthropic = new Anthropic({ baseURL: url, apiKey: "none", maxRetries: 0 });
  });
  after(async () => {
    await octavoMini[Symbol.asyncDispose]();
  });

  const parameters = {
    type: "object",
    properties: {
      city: { type: "string", maxLength: 12 },
      days: { type: "integer", minimum: 1, maximum: 9 },
    },
    required: ["city"],
    additionalProperties: false,
  } as const;
  const questions = [
    "What is the weather in Oslo?",
    "Hello!",
    "Was kostet Käse? 🧀",
    "Describe a person as JSON.",
    "1, 2, 3,",
  ];

  function pick<T>(random: TestRandom, items: readonly T[]): T {
    return items[random.below(items.length)]!;
  }

  function sampling(random: TestRandom): object {
    return {
      temperature: pick(random, [0, 0.7, 1.2]),
      seed: random.below(1000),
      ...pick<object>(random, [
        {},
        { stop: ["e"] },
        { stop: ["\n", ". "] },
        { min_tokens: 5 },
        { ignore_eos: true },
      ]),
    };
  }

  const constraints: readonly object[] = [
    {},
    { response_format: { type: "json_object" } },
    {
      response_format: { type: "json_schema", json_schema: { name: "x", schema: parameters, strict: true } },
    },
    { structured_outputs: { regex: "[a-zé ]{4,30}" } },
    { structured_outputs: { choice: ["grün", "rot", "blau und gelb"] } },
  ];

  it("of chat: text, tools, reasoning, constraints, several choices", async () => {
    const random = new TestRandom(5);
    const bodies = Array.from({ length: numRequests }, () => {
      const withTools = random.next() < 0.5;
      const strict = random.next() < 0.5;
      return {
        model: "octavo-mini",
        messages: [{ role: "user", content: pick(random, questions) }],
        max_tokens: 4 + random.below(60),
        n: 1 + random.below(3),
        ...sampling(random),
        ...(withTools
          ? {
              tools: ["get_weather", "get_time"].map((name) => ({
                type: "function",
                function: { name, parameters, strict },
              })),
              tool_choice: pick(random, ["auto", "required", "none"]),
            }
          : pick(random, constraints)),
        ...pick<object>(random, [{}, { include_reasoning: false }, { logprobs: true }]),
      } as unknown as OpenAI.ChatCompletionCreateParamsNonStreaming;
    });
    await Promise.all(
      bodies.map(async (body) => {
        const whole = await client.chat.completions.create(body);
        const parts = new Map<number, ChatSum>();
        const stream = await client.chat.completions.create({ ...body, stream: true });
        for await (const { choices } of stream) for (const choice of choices) addChunk(parts, choice);
        for (const choice of whole.choices) {
          const message = choice.message as typeof choice.message & { reasoning?: string | null };
          const expected: ChatSum = {
            content: message.content ?? "",
            reasoning: message.reasoning ?? "",
            calls: (message.tool_calls ?? []).map((call) =>
              call.type === "function"
                ? { name: call.function.name, arguments: call.function.arguments }
                : noCall,
            ),
            finish: choice.finish_reason,
            tokens: choice.logprobs?.content?.map(({ token }) => token).join("") ?? "",
          };
          assert.deepEqual(parts.get(choice.index), expected, JSON.stringify(body));
        }
        assert.equal(parts.size, whole.choices.length);
      }),
    );
  });

  it("of completions: echo, several prompts and choices, constraints", async () => {
    const random = new TestRandom(6);
    await Promise.all(
      Array.from({ length: numRequests }, async () => {
        const body = {
          model: "octavo-mini",
          prompt: pick<string | string[]>(random, ["Once", ["One, two,", "Drei, vier: ü"], "{"]),
          max_tokens: 3 + random.below(40),
          n: 1 + random.below(2),
          echo: random.next() < 0.3,
          ...sampling(random),
          ...pick(
            random,
            constraints.filter((constraint) => !("response_format" in constraint)),
          ),
        } as OpenAI.CompletionCreateParamsNonStreaming;
        const whole = await client.completions.create(body);
        const texts = new Map<number, string>();
        const reasons = new Map<number, string>();
        for await (const { choices } of await client.completions.create({ ...body, stream: true })) {
          for (const { index, text, finish_reason: reason } of choices) {
            texts.set(index, (texts.get(index) ?? "") + text);
            if ((reason as string | null) !== null) reasons.set(index, reason);
          }
        }
        for (const { index, text, finish_reason: reason } of whole.choices) {
          assert.equal(texts.get(index), text, JSON.stringify(body));
          assert.equal(reasons.get(index), reason);
        }
      }),
    );
  });

  it("of responses: text, calls, JSON", async () => {
    const random = new TestRandom(7);
    await Promise.all(
      Array.from({ length: numRequests }, async () => {
        const body = {
          model: "octavo-mini",
          input: pick(random, questions),
          max_output_tokens: 16 + random.below(48),
          temperature: 0,
          store: false,
          ...pick<object>(random, [
            {},
            { tools: [{ type: "function", name: "get_weather", parameters, strict: true }] },
            {
              tools: [{ type: "function", name: "get_weather", parameters, strict: false }],
              tool_choice: "required",
            },
            { text: { format: { type: "json_schema", name: "x", schema: parameters, strict: true } } },
          ]),
        } as OpenAI.Responses.ResponseCreateParamsNonStreaming;
        const whole = await client.responses.create(body);
        const texts: string[] = [];
        for await (const event of await client.responses.create({ ...body, stream: true }))
          if ("delta" in event && "output_index" in event && typeof event.delta === "string")
            texts[event.output_index] = (texts[event.output_index] ?? "") + event.delta;
        const expected = whole.output.map((item) => {
          if (item.type === "function_call") return item.arguments;
          if (item.type !== "message") return texts[whole.output.indexOf(item)];
          return item.content.map((part) => (part.type === "output_text" ? part.text : "")).join("");
        });
        assert.deepEqual(
          expected.map((text, index) => texts[index] ?? (text === "" ? "" : undefined)),
          expected,
          JSON.stringify(body),
        );
      }),
    );
  });

  it("of messages: text and tools", async () => {
    const random = new TestRandom(8);
    await Promise.all(
      Array.from({ length: numRequests }, async () => {
        const body = {
          model: "octavo-mini",
          messages: [{ role: "user" as const, content: pick(random, questions) }],
          max_tokens: 8 + random.below(56),
          temperature: 0,
          ...pick<object>(random, [
            {},
            { stop_sequences: ["e"] },
            { tools: [{ name: "get_weather", input_schema: parameters }] },
            { tools: [{ name: "get_weather", input_schema: parameters }], tool_choice: { type: "any" } },
          ]),
        };
        const whole = await anthropic.messages.create(body);
        const streamed = await anthropic.messages.stream(body).finalMessage();
        const plain = ({ content, stop_reason: reason }: Anthropic.Message): unknown => [
          reason,
          content.map((block) => (block.type === "tool_use" ? [block.name, block.input] : block)),
        ];
        assert.deepEqual(plain(streamed), plain(whole), JSON.stringify(body));
      }),
    );
  });
});

interface CallSum {
  name: string;
  arguments: string;
}

interface ChatSum {
  content: string;
  reasoning: string;
  readonly calls: CallSum[];
  finish: string | null;
  tokens: string;
}

const noCall: CallSum = { name: "", arguments: "" };

function addChunk(parts: Map<number, ChatSum>, choice: OpenAI.ChatCompletionChunk.Choice): void {
  let sum = parts.get(choice.index);
  if (sum === undefined) {
    sum = { content: "", reasoning: "", calls: [], finish: null, tokens: "" };
    parts.set(choice.index, sum);
  }
  const delta = choice.delta as typeof choice.delta & { reasoning?: string | null };
  sum.content += delta.content ?? "";
  sum.reasoning += delta.reasoning ?? "";
  for (const { index, function: part } of delta.tool_calls ?? []) {
    const call = (sum.calls[index] ??= { ...noCall });
    call.name += part?.name ?? "";
    call.arguments += part?.arguments ?? "";
  }
  sum.finish ??= choice.finish_reason;
  for (const { token } of choice.logprobs?.content ?? []) sum.tokens += token;
}
