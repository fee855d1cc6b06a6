import { z } from "zod";
import { chatMessages } from "./chat-messages.js";
import { chatCompletionRequest } from "./chat.js";
import { isFalse, listOf, requestLimits, unsupported } from "./fields.js";

const notesAndFaults = ["include_serving_record", "include_logits_digest", "faults", "emitted_token_ids"];

const isHarmlessWish = (value: unknown): boolean =>
  typeof value === "object" &&
  value !== null &&
  Object.entries(value).every(
    ([name, wish]) => wish === null || wish === false || !notesAndFaults.includes(name),
  );

/** vLLM's `/v1/chat/completions/batch`: a chat request with several conversations, each answered by one choice. */
export const chatBatchRequest = z.object({
  ...chatCompletionRequest.shape,
  messages: listOf(chatMessages, { min: 1, max: requestLimits.conversations }),
  n: unsupported("a batch has one choice for each conversation", (value) => value === 1),
  stream: unsupported("a batch is answered at once", isFalse),
  stream_options: unsupported("a batch is answered at once"),
  octavo: unsupported(
    "a batch has no serving records (ask /v1/requests for them), gives no digests, takes no faults and continues no answers",
    isHarmlessWish,
  ),
  return_prompt_text: unsupported("a batch does not repeat prompts; ask for one conversation's", isFalse),
  prompt_logprobs: unsupported("a batch has no prompt_logprobs; ask for them with one conversation"),
});

export type ChatBatchRequest = z.output<typeof chatBatchRequest>;
