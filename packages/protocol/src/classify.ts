import { z } from "zod";
import { chatPromptFields } from "./chat.js";
import { hasOneInput } from "./embeddings.js";
import { poolingFields } from "./fields.js";
import { promptInputs } from "./prompt-input.js";

/** vLLM's classification request. */
export const classifyRequest = z
  .object({
    ...poolingFields,
    ...chatPromptFields,
    input: promptInputs.nullish(),
    messages: chatPromptFields.messages.nullish(),
    /** Probabilities of the labels, the default, or the head's scores. */
    use_activation: z.boolean().nullish(),
  })
  .superRefine(hasOneInput);

export type ClassifyRequest = z.output<typeof classifyRequest>;

export interface ClassificationList {
  readonly id: string;
  readonly object: "list";
  readonly created: number;
  readonly model: string;
  readonly data: readonly {
    readonly index: number;
    /** The likeliest one. */
    readonly label: string | null;
    readonly probs: readonly number[];
    readonly num_classes: number;
  }[];
  readonly usage: {
    readonly prompt_tokens: number;
    readonly total_tokens: number;
    readonly completion_tokens: 0;
  };
}
