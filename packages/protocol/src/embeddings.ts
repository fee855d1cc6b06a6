import { z } from "zod";
import { chatPromptFields } from "./chat.js";
import { poolingFields, unsupported } from "./fields.js";
import { promptInputs } from "./prompt-input.js";

/** Types in which numbers are sent as bytes. */
const embedDtypes = ["float32", "float16", "bfloat16", "fp8_e4m3", "fp8_e5m2"] as const;
export type EmbedDtype = (typeof embedDtypes)[number];

const endiannesses = ["native", "big", "little"] as const;
export type Endianness = (typeof endiannesses)[number];

const vectorFields = {
  ...poolingFields,
  ...chatPromptFields,
  input: promptInputs.nullish(),
  messages: chatPromptFields.messages.nullish(),
  encoding_format: z.enum(["float", "base64", "bytes", "bytes_only"]).nullish(),
  embed_dtype: z.enum(embedDtypes).nullish(),
  endianness: z.enum(endiannesses).nullish(),
  dimensions: z.int().min(1).nullish(),
  /** Name of the model's prompt that is put before each text; default the one that the model says. */
  prompt_name: z.string().max(100).nullish(),
  /** Unit length, as OpenAI's; default true. */
  normalize: z.boolean().nullish(),
  /** vLLM's name for it. */
  use_activation: z.boolean().nullish(),
} as const;

/** Either `input`, or `messages` with what shapes a chat prompt. */
export function hasOneInput(
  request: { readonly input?: unknown; readonly messages?: unknown },
  context: z.RefinementCtx,
): void {
  const isGiven = (value: unknown): boolean => value !== undefined && value !== null;
  if (isGiven(request.input) === isGiven(request.messages))
    context.addIssue({ code: "custom", message: "give either input or messages" });
}

export const embeddingRequest = z.object(vectorFields).superRefine(hasOneInput);

export type EmbeddingsRequest = z.output<typeof embeddingRequest>;

/** vLLM's `/pooling`, of which decoders have the task `embed`. */
export const poolingRequest = z
  .object({
    ...vectorFields,
    task: unsupported("this model can only embed", (value) => value === "embed"),
    data: unsupported("this server has no plugins that read data"),
  })
  .superRefine(hasOneInput);

export type PoolingRequest = z.output<typeof poolingRequest>;

export interface EmbeddingItem {
  readonly object: "embedding";
  readonly index: number;
  /** Numbers, or their bytes in base64. */
  readonly embedding: readonly number[] | string;
}

/** What the answers to embeddings and pooling share. */
interface VectorList {
  readonly id: string;
  readonly object: "list";
  readonly created: number;
  readonly model: string;
  readonly usage: {
    readonly prompt_tokens: number;
    readonly total_tokens: number;
    readonly completion_tokens: 0;
    readonly prompt_tokens_details: { readonly cached_tokens: number };
  };
}

export interface EmbeddingList extends VectorList {
  readonly data: readonly EmbeddingItem[];
}

export interface PoolingList extends VectorList {
  readonly data: readonly {
    readonly index: number;
    readonly object: "pooling";
    readonly data: readonly number[] | string;
  }[];
}
