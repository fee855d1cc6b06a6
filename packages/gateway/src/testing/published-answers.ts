import type { JsonFields } from "@octavo/protocol";

/** A conversation with all that translation has to carry: system, image, call, result. */
export const toolRequest: JsonFields = {
  model: "alias",
  messages: [
    { role: "system", content: "Be brief." },
    {
      role: "user",
      content: [
        { type: "text", text: "What is in this picture, and how is the weather there?" },
        { type: "image_url", image_url: { url: "data:image/png;base64,aGk=" } },
      ],
    },
    {
      role: "assistant",
      content: "Paris. Let me look.",
      tool_calls: [
        { id: "call_1", type: "function", function: { name: "get_weather", arguments: '{"city":"Paris"}' } },
      ],
    },
    { role: "tool", tool_call_id: "call_1", content: '{"celsius":21}' },
    { role: "user", content: "In Fahrenheit, please." },
  ],
  tools: [
    {
      type: "function",
      function: {
        name: "get_weather",
        description: "Weather of a city",
        parameters: { type: "object", properties: { city: { type: "string" } } },
      },
    },
  ],
  tool_choice: "required",
};

export const anthropicAnswer: JsonFields = {
  id: "msg_01",
  type: "message",
  role: "assistant",
  model: "claude",
  content: [
    { type: "thinking", thinking: "The user wants the weather.", signature: "x" },
    { type: "text", text: "I'll check the weather." },
    { type: "tool_use", id: "toolu_01", name: "get_weather", input: { city: "Paris" } },
  ],
  stop_reason: "tool_use",
  stop_sequence: null,
  usage: {
    input_tokens: 472,
    cache_read_input_tokens: 100,
    cache_creation_input_tokens: 20,
    output_tokens: 89,
  },
};

const named = (type: string, data: object): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`;

/** After the streaming example with tool use of Anthropic's documentation. */
export const anthropicStream = [
  named("message_start", {
    message: {
      id: "msg_014p7gG3wDgGV9EUtLvnow3U",
      type: "message",
      role: "assistant",
      model: "claude",
      stop_sequence: null,
      usage: { input_tokens: 472, output_tokens: 2 },
      content: [],
      stop_reason: null,
    },
  }),
  named("content_block_start", { index: 0, content_block: { type: "text", text: "" } }),
  named("ping", {}),
  ...["Okay", ", let's check the weather", " for San Francisco, CA", ":"].map((text) =>
    named("content_block_delta", { index: 0, delta: { type: "text_delta", text } }),
  ),
  named("content_block_stop", { index: 0 }),
  named("content_block_start", {
    index: 1,
    content_block: { type: "tool_use", id: "toolu_01T1x1fJ34qAmk2tNTrN7Up6", name: "get_weather", input: {} },
  }),
  ...["", '{"location":', ' "San', ' Francisco, CA", "unit": "fahrenheit"}'].map((partial_json) =>
    named("content_block_delta", { index: 1, delta: { type: "input_json_delta", partial_json } }),
  ),
  named("content_block_stop", { index: 1 }),
  named("message_delta", {
    delta: { stop_reason: "tool_use", stop_sequence: null },
    usage: { output_tokens: 89 },
  }),
  named("message_stop", {}),
].join("");

export const geminiAnswer: JsonFields = {
  candidates: [
    {
      content: {
        role: "model",
        parts: [
          { text: "A call is needed.", thought: true },
          { functionCall: { name: "get_weather", args: { city: "Paris" } } },
        ],
      },
      finishReason: "STOP",
      index: 0,
    },
  ],
  usageMetadata: {
    promptTokenCount: 40,
    cachedContentTokenCount: 16,
    candidatesTokenCount: 10,
    thoughtsTokenCount: 15,
    totalTokenCount: 65,
  },
  modelVersion: "gemini-2.5-flash",
  responseId: "abc",
};

const geminiEvent = (text: string, more: object = {}): string =>
  `data: ${JSON.stringify({
    candidates: [{ content: { parts: [{ text }], role: "model" }, index: 0, ...more }],
    usageMetadata: { promptTokenCount: 4, candidatesTokenCount: 5, totalTokenCount: 9 },
    modelVersion: "gemini-2.5-flash",
    responseId: "abc",
  })}\r\n\r\n`;

/** Their events end in carriage returns. */
export const geminiStream =
  geminiEvent("Hello") + geminiEvent(" there, wor") + geminiEvent("ld.", { finishReason: "MAX_TOKENS" });
