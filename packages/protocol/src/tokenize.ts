import { z } from "zod";
import { chatPromptFields } from "./chat.js";
import { deliveryFields } from "./fields.js";
import { tokenIdArray } from "./prompt-input.js";

/** Either `prompt`, or `messages` with everything that shapes a chat prompt. */
export const tokenizeRequest = z
  .object({
    ...chatPromptFields,
    messages: chatPromptFields.messages.nullish(),
    model: deliveryFields.model,
    prompt: z.string().nullish(),
    return_token_strs: z.boolean().nullish(),
  })
  .superRefine((request, context) => {
    const given = Number(typeof request.prompt === "string") + Number(Array.isArray(request.messages));
    if (given !== 1) context.addIssue({ code: "custom", message: "give either prompt or messages" });
  });

export type TokenizeRequest = z.output<typeof tokenizeRequest>;

export interface TokenizeResponse {
  readonly count: number;
  readonly max_model_len: number;
  readonly tokens: readonly number[];
  readonly token_strs: readonly string[] | null;
}

export const detokenizeRequest = z.object({ model: deliveryFields.model, tokens: tokenIdArray });

export type DetokenizeRequest = z.output<typeof detokenizeRequest>;

export interface DetokenizeResponse {
  readonly prompt: string;
}
