import { z } from "zod";
import { octavoFields } from "./serving-record.js";
import type { IssueParams } from "./validation.js";

/** Bounds of request lists and strings; beyond them a request is refused, never trimmed. */
export const requestLimits = {
  sequences: 128,
  /** Choices of all prompts of a request. */
  totalSequences: 4096,
  prompts: 2048,
  /** Most chats in a batch. */
  conversations: 1024,
  messages: 16_384,
  contentParts: 4096,
  tools: 1024,
  stopStrings: 64,
  stopStringLength: 1024,
  stopTokenIds: 1024,
  badWords: 1024,
  logprobTokenIds: 128,
  logitBias: 4096,
  allowedTokenIds: 262_144,
  documents: 1024,
  templateLength: 128 * 1024,
  idLength: 256,
} as const;

export const maxTokenId = 2 ** 31 - 1;

/** How a schema whose check is a function of ours looks on the wire; for the OpenAPI document. */
export interface WireForm {
  readonly description?: string;
  /** An array of this. */
  readonly items?: z.ZodType;
  readonly minItems?: number;
  readonly maxItems?: number;
  /** One of these. */
  readonly anyOf?: readonly z.ZodType[];
}

const wireForms = new WeakMap<object, WireForm>();

export function withWireForm<Schema extends z.ZodType>(schema: Schema, form: WireForm): Schema {
  wireForms.set(schema, form);
  return schema;
}

export function wireFormOf(schema: object): WireForm | undefined {
  return wireForms.get(schema);
}

/** What a request field does where it is not honoured. */
export type FieldEffect = "none" | "refused";

const effects = new WeakMap<object, FieldEffect>();

export function effectOf(schema: object): FieldEffect | undefined {
  return effects.get(schema);
}

/** A field that clients send and that changes no answer here: published as without effect, and taken as it comes or as `taken` allows. */
export function withoutEffect(taken: z.ZodType = z.unknown()) {
  const schema = taken.nullish();
  effects.set(schema, "none");
  return withWireForm(schema, { description: "Accepted; has no effect." });
}

/** Refuses a field that would change the answer, when it asks for something Octavo does not do. */
export function unsupported(reason: string, isHarmless: (value: unknown) => boolean = () => false) {
  const schema = z
    .unknown()
    .superRefine((value, context) => {
      if (value === undefined || value === null || isHarmless(value)) return;
      const params: IssueParams = { errorCode: "unsupported_parameter" };
      context.addIssue({ code: "custom", message: reason, params: { ...params } });
    })
    .optional();
  effects.set(schema, "refused");
  return withWireForm(schema, { description: `Refused when it asks for something: ${reason}.` });
}

/** An empty list or object. */
export const isEmpty = (value: unknown): boolean =>
  typeof value === "object" && value !== null && Object.keys(value).length === 0;

export const isFalse = (value: unknown): boolean => value === false;

const finite = z.number();
const tokenId = z.int().min(0).max(maxTokenId);

/**
 * An array whose entries are checked up to the first bad one. `z.array` keeps every problem of every entry, which for
 * a body of millions of bad ones is gigabytes.
 */
export function listOf<Entry extends z.ZodType>(entry: Entry, bounds: { min?: number; max: number }) {
  const { min = 0, max } = bounds;
  const list = z.unknown().transform((value, context): z.output<Entry>[] => {
    if (!Array.isArray(value)) {
      context.addIssue({ code: "invalid_type", expected: "array", message: "Invalid input: expected array" });
      return z.NEVER;
    }
    if (value.length < min || value.length > max) {
      const message = `must have ${min} to ${max} entries, got ${value.length}`;
      context.addIssue({ code: "custom", message });
      return z.NEVER;
    }
    const entries: z.output<Entry>[] = [];
    for (const [index, item] of value.entries()) {
      const result = entry.safeParse(item);
      if (!result.success) {
        for (const issue of result.error.issues)
          context.addIssue({ ...issue, input: item, path: [index, ...issue.path] });
        return z.NEVER;
      }
      entries.push(result.data);
    }
    return entries;
  });
  return withWireForm(list, { items: entry, minItems: min, maxItems: max });
}

/** `logit_bias` as sent: token ids are the keys. Values outside -100..100 are an error. */
const biases = z.record(z.string(), finite.min(-100).max(100));
const logitBias = withWireForm(
  z
    .unknown()
    .superRefine((bias, context) => {
      const keys = typeof bias === "object" && bias !== null ? Object.keys(bias) : [];
      const bad = keys.find((key) => !/^\d{1,10}$/.test(key));
      const message =
        keys.length > requestLimits.logitBias
          ? `at most ${requestLimits.logitBias} entries are allowed, got ${keys.length}`
          : bad === undefined
            ? undefined
            : `keys must be token ids, got ${JSON.stringify(bad.slice(0, 48))}`;
      if (message !== undefined) context.addIssue({ code: "custom", message, continue: false });
    })
    .pipe(biases),
  { anyOf: [biases] },
);

/** Clients draw seeds of 64 bits, of which JSON's numbers keep the upper 53: what arrives is taken as it is. */
const seed = finite
  .min(-(2 ** 63))
  .max(2 ** 63)
  .refine(Number.isInteger, { error: "must be an integer" });

const stopString = z.string().min(1).max(requestLimits.stopStringLength);

/** A list of token ids, checked in one pass. */
function tokenIds(least: number, most: number) {
  const list = z.unknown().transform((value, context): readonly number[] => {
    const fail = (message: string, path: PropertyKey[] = []): never => {
      context.addIssue({ code: "custom", message, path });
      return z.NEVER;
    };
    if (!Array.isArray(value)) return fail("must be an array of token ids");
    if (value.length < least || value.length > most)
      return fail(`must have ${least} to ${most} token ids, got ${value.length}`);
    const ids: readonly unknown[] = value;
    const bad = ids.findIndex((id) => !isTokenId(id));
    if (bad >= 0) return fail(`token ids must be integers from 0 to ${maxTokenId}`, [bad]);
    return ids as readonly number[];
  });
  return withWireForm(list, { items: tokenId, minItems: least, maxItems: most });
}

export function isTokenId(value: unknown): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= maxTokenId;
}

const truncatePromptTokens = z.int().min(-1).max(maxTokenId);

/** Fields of vLLM's SamplingParams under their wire names, shared by chat and completions. */
export const samplingFields = {
  temperature: finite.min(0).max(1e6).nullish(),
  top_p: finite.gt(0).max(1).nullish(),
  top_k: z.int().min(-1).max(maxTokenId).nullish(),
  min_p: finite.min(0).max(1).nullish(),
  presence_penalty: finite.min(-2).max(2).nullish(),
  frequency_penalty: finite.min(-2).max(2).nullish(),
  repetition_penalty: finite.gt(0).max(1e6).nullish(),
  n: z.int().min(1).max(requestLimits.sequences).nullish(),
  seed: seed.nullish(),
  stop: z.union([stopString, z.array(stopString).max(requestLimits.stopStrings)]).nullish(),
  stop_token_ids: z.array(tokenId).max(requestLimits.stopTokenIds).nullish(),
  include_stop_str_in_output: z.boolean().nullish(),
  ignore_eos: z.boolean().nullish(),
  min_tokens: z.int().min(0).max(maxTokenId).nullish(),
  skip_special_tokens: z.boolean().nullish(),
  spaces_between_special_tokens: withoutEffect(),
  logit_bias: logitBias.nullish(),
  /** A list of ids is checked in one pass, as prompts are: it may be as long as the vocabulary. */
  allowed_token_ids: tokenIds(1, requestLimits.allowedTokenIds).nullish(),
  bad_words: z
    .array(z.string().min(1).max(requestLimits.stopStringLength))
    .max(requestLimits.badWords)
    .nullish(),
  prompt_logprobs: z.int().min(-1).nullish(),
  logprob_token_ids: z.array(tokenId).min(1).max(requestLimits.logprobTokenIds).nullish(),
} as const;

const streamOptions = z.object({
  include_usage: z.boolean().nullish(),
  continuous_usage_stats: z.boolean().nullish(),
  include_obfuscation: withoutEffect(),
});

/** vLLM: kept to plain characters because salts end up in keys of outside caches. */
const cacheSalt = z
  .string()
  .min(1)
  .max(128)
  .refine((salt) => !/[@/\\\0]/.test(salt), { error: "must not contain '@', '/', '\\' or NUL" });

/** vLLM's, for serving in which prompts are computed elsewhere. */
export const transferFields = {
  kv_transfer_params: unsupported("KV transfer between engines is not supported"),
  ec_transfer_params: unsupported("encoder caches of other engines are not supported"),
} as const;

/** vLLM's settings for reading images, sound and video, of which requests here have none. */
export const mediaFields = {
  media_io_kwargs: withoutEffect(),
  mm_processor_kwargs: withoutEffect(),
} as const;

/** Keys of OpenAI's own caches, billing and moderation. */
export const accountFields = {
  prompt_cache_key: withoutEffect(),
  prompt_cache_options: withoutEffect(),
  prompt_cache_retention: withoutEffect(),
  safety_identifier: withoutEffect(),
  service_tier: withoutEffect(),
  moderation: unsupported("answers are not moderated"),
} as const;

/** Fields about how a request is run and answered rather than how tokens are drawn. */
export const deliveryFields = {
  model: z.string().max(4096).nullish(),
  stream: z.boolean().nullish(),
  stream_options: streamOptions.nullish(),
  user: z.string().nullish(),
  metadata: z.record(z.string(), z.unknown()).nullish(),
  priority: z.int().nullish(),
  request_id: z.string().min(1).max(requestLimits.idLength).nullish(),
  cache_salt: cacheSalt.nullish(),
  truncate_prompt_tokens: truncatePromptTokens.nullish(),
  truncation_side: z.enum(["left", "right"]).nullish(),
  return_token_ids: z.boolean().nullish(),
  octavo: octavoFields.nullish(),
  return_tokens_as_token_ids: z.boolean().nullish(),
  /** For routers in front, which keep a session on one server. */
  session_id: withoutEffect(),
  return_prompt_text: z.boolean().nullish(),
  /** Tokens of a choice that a chunk of a stream holds at least, its first and last ones apart. */
  stream_interval: z.int().min(1).max(maxTokenId).nullish(),
  length_penalty: unsupported("only beam search has a length penalty", (value) => value === 1),
  vllm_xargs: unsupported("there are no engine arguments beside the fields of the request", isEmpty),
  use_beam_search: unsupported("beam search is not supported", isFalse),
  ...transferFields,
  watermarking: unsupported("answers are not watermarked", isFalse),
  /** vLLM's, for answers that carry experts, offsets or media, which these never do. */
  routed_experts_prompt_start: withoutEffect(),
  return_token_offsets: withoutEffect(),
  return_mm_kwargs: withoutEffect(),
  repetition_detection: unsupported("repetition detection is not supported"),
  thinking_token_budget: unsupported("completions do not separate reasoning; use chat completions"),
  prompt_embeds: unsupported("prompt embeddings are not accepted; send text or token ids"),
} as const;

/** Fields that all endpoints have which pool instead of generating. */
export const poolingFields = {
  model: deliveryFields.model,
  user: deliveryFields.user,
  request_id: deliveryFields.request_id,
  truncate_prompt_tokens: deliveryFields.truncate_prompt_tokens,
  truncation_side: deliveryFields.truncation_side,
  mm_processor_kwargs: mediaFields.mm_processor_kwargs,
  priority: unsupported("embeddings have no priorities", (value) => value === 0),
  cache_salt: deliveryFields.cache_salt,
  padding: unsupported("inputs are never padded", (value) => value === "do_not_pad"),
} as const;

const hasNoPlace = "answers of this API have no place for it; ask /v1/requests, or /v1/chat/completions";

/** `octavo` of APIs that others defined: bounds on time, and faults; what would be noted in the answer is refused by name. */
export const octavoTerms = z.strictObject({
  ...octavoFields.shape,
  include_serving_record: unsupported(hasNoPlace, isFalse),
  include_logits_digest: unsupported(hasNoPlace, isFalse),
  emitted_token_ids: unsupported(
    "answers of this API are not continued; ask /v1/chat/completions or /v1/completions",
  ),
});
