/** What both targets of the measurements answer to a call that is no stream. */
export const mockCompletion = JSON.stringify({
  id: "chatcmpl-1",
  object: "chat.completion",
  created: 1,
  model: "mock",
  choices: [
    {
      index: 0,
      message: { role: "assistant", content: "x".repeat(200) },
      logprobs: null,
      finish_reason: "stop",
    },
  ],
  usage: { prompt_tokens: 20, completion_tokens: 50, total_tokens: 70 },
});
