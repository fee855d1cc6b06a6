import assert from "node:assert/strict";
import OpenAI from "openai";
import { instrumentOpenAI } from "../openai/instrument-openai.js";
import { register, type RegisterOptions } from "../register.js";
import type { LlmSpan } from "../span/llm-span.js";
import type { Tracing } from "../tracing.js";
import { MemorySink } from "./memory-sink.js";
import { type MockAnswer, type MockOpenAI, startMockOpenAI } from "./mock-openai.js";

export interface Scene {
  readonly client: OpenAI;
  readonly mock: MockOpenAI;
  readonly tracing: Tracing;
  readonly spans: readonly LlmSpan[];
}

/** Runs `act` with an instrumented client against a mock server; afterwards every call has ended. */
export async function scene(
  answer: MockAnswer,
  act: (scene: Scene) => Promise<void>,
  options: RegisterOptions = {},
): Promise<readonly LlmSpan[]> {
  await using mock = await startMockOpenAI(answer);
  const sink = new MemorySink();
  const tracing = register({ sinks: [sink], ...options });
  const instrumentation = instrumentOpenAI(OpenAI, tracing);
  try {
    const client = new OpenAI({ baseURL: mock.baseURL, apiKey: "unused", maxRetries: 0 });
    await act({ client, mock, tracing, spans: sink.spans });
  } finally {
    instrumentation[Symbol.dispose]();
  }
  assert.equal(tracing.openCalls, 0, "every span has ended");
  await tracing.shutdown();
  return sink.spans;
}

export function only(spans: readonly LlmSpan[]): LlmSpan {
  assert.equal(spans.length, 1);
  return spans[0]!;
}

export const usageBody = {
  prompt_tokens: 12,
  completion_tokens: 3,
  total_tokens: 15,
  prompt_tokens_details: { cached_tokens: 8 },
  completion_tokens_details: { reasoning_tokens: 1 },
};

export const toolCallCompletion = {
  id: "chatcmpl-1",
  object: "chat.completion",
  created: 1,
  model: "served",
  system_fingerprint: "fp",
  choices: [
    {
      index: 0,
      finish_reason: "tool_calls",
      logprobs: null,
      message: {
        role: "assistant",
        content: null,
        tool_calls: [
          { id: "c1", type: "function", function: { name: "weather", arguments: '{"city":"Paris"}' } },
        ],
      },
    },
  ],
  usage: usageBody,
};

export const textCompletion = {
  ...toolCallCompletion,
  choices: [
    {
      index: 0,
      finish_reason: "stop",
      logprobs: null,
      message: { role: "assistant", content: '{"a":1}', refusal: null },
    },
  ],
};

export const chatChunk = (delta: object, finish: string | null = null) => ({
  id: "chatcmpl-2",
  object: "chat.completion.chunk",
  created: 1,
  model: "served",
  choices: [{ index: 0, delta, finish_reason: finish, logprobs: null }],
});

export const chunks = [
  chatChunk({ role: "assistant", content: "" }),
  chatChunk({ content: "Hel" }),
  chatChunk({ content: "lo" }),
  chatChunk({ content: "!" }),
  chatChunk({}, "stop"),
  { ...chatChunk({}), choices: [], usage: usageBody },
];

const messages = [{ role: "user" as const, content: "private words" }];
export const chatBody = { model: "asked", messages };
export const streamed = { ...chatBody, stream: true as const };

/** Reads everything; the number of parts. */
export async function drain(stream: AsyncIterable<unknown>): Promise<number> {
  const iterator = stream[Symbol.asyncIterator]();
  let total = 0;
  while ((await iterator.next()).done !== true) total++;
  return total;
}
