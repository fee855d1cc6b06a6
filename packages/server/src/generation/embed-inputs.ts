import type { Usage } from "@octavo/engine";
import { OctavoError, type EmbeddingsRequest, type PromptInput } from "@octavo/protocol";
import type { RequestContext } from "../http/request-context.js";
import type { ServedModel, Service } from "../service.js";
import { truncatePrompt } from "./context-length.js";
import { promptLimit } from "./encode-prompt.js";
import { engineRequestId } from "./serving-records.js";
import { tokenizePrompts } from "./tokenize-prompts.js";
import { invalidField } from "@octavo/protocol/refusal";

type EmbeddingFields = Pick<
  EmbeddingsRequest,
  "truncate_prompt_tokens" | "truncation_side" | "user" | "cache_salt"
> &
  Partial<Pick<EmbeddingsRequest, "add_special_tokens" | "normalize">>;

export interface EmbeddedInput {
  readonly embedding: Float32Array;
  readonly usage: Usage;
}

/** The embeddings of texts or token ids, in order, as one batch. `fieldOf` names an input in errors. */
export async function embedInputs(
  service: Service,
  context: RequestContext,
  { adapter }: ServedModel,
  inputs: readonly PromptInput[],
  options: EmbeddingFields,
  fieldOf: (index: number) => string,
): Promise<readonly EmbeddedInput[]> {
  const { engine, config } = service.model;
  const { pooling } = service.config;
  const { embedding: declared } = config;
  const encoding = {
    addSpecialTokens: options.add_special_tokens ?? true,
    maxTokens: promptLimit(service.model, options),
  };
  const given = await tokenizePrompts(service, context, inputs, encoding, fieldOf);
  const prompts = given.map((tokens, index) => prepareInput(service, options, tokens, fieldOf(index)));
  const batch = {};
  const { account } = context;
  const terms = service.termsOf(account, options);
  const results = await Promise.all(
    prompts.map((tokens, index) => {
      const requestId = engineRequestId(context.octavoId, index, prompts.length);
      account.queued();
      const result = engine.embed(
        {
          batch,
          kind: "embed",
          requestId,
          promptTokens: tokens,
          pooling: pooling === "auto" ? (declared?.pooling ?? "last") : pooling,
          normalize: options.normalize ?? declared?.normalize ?? true,
          adapter,
          ...(options.cache_salt ? { cacheSalt: options.cache_salt } : {}),
          arrivalMs: context.arrivalMs,
          ...terms,
        },
        context.signal,
      );
      result.catch(() => {
        // one that the engine never took is never settled
        if (engine.evidence.request(requestId) === undefined) account.refused();
      });
      return result;
    }),
  );
  context.signal.throwIfAborted();
  return results;
}

function prepareInput(
  service: Service,
  options: EmbeddingFields,
  given: Int32Array,
  field: string,
): Int32Array {
  const { maxModelLen } = service.model.engine;
  const { truncate_prompt_tokens: wanted, truncation_side: side } = options;
  const tokens = truncatePrompt(given, wanted === -1 ? maxModelLen : wanted, side, maxModelLen);
  if (tokens.length === 0) throw invalidField(field, "the input has no tokens");
  if (tokens.length > maxModelLen) {
    const message = `${field}: the input has ${tokens.length} tokens and this model's context length is ${maxModelLen} tokens; shorten it, or set truncate_prompt_tokens`;
    throw new OctavoError("context_length_exceeded", message, { param: field });
  }
  return tokens;
}
