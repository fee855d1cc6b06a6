import type { Pooling, Usage } from "@octavo/engine";
import { OctavoError, type EmbeddingsRequest } from "@octavo/protocol";
import type { RequestContext } from "../http/request-context.js";
import type { ServedModel, Service } from "../service.js";
import { invalidField } from "@octavo/protocol/refusal";
import { engineRequestId } from "./serving-records.js";

/** Fields of every request that pools. */
export type PoolingFields = Pick<
  EmbeddingsRequest,
  "truncate_prompt_tokens" | "truncation_side" | "user" | "cache_salt"
>;

/** A text ready for the model; see `EmbeddingRequest`. */
export interface PooledPrompt {
  readonly tokens: Int32Array;
  readonly secondFrom?: number | undefined;
}

export interface PooledVector {
  readonly embedding: Float32Array;
  readonly usage: Usage;
}

/** What the model gives of each prompt, in order, queued as one batch. */
export async function runPooling(
  service: Service,
  context: RequestContext,
  { adapter }: ServedModel,
  prompts: readonly PooledPrompt[],
  how: { readonly pooling: Pooling; readonly normalize: boolean },
  options: PoolingFields,
): Promise<readonly PooledVector[]> {
  const { engine } = service.model;
  const batch = {};
  const { account } = context;
  const terms = service.termsOf(account, options);
  const results = await Promise.all(
    prompts.map(({ tokens, secondFrom }, index) => {
      const requestId = engineRequestId(context.octavoId, index, prompts.length);
      account.queued();
      const result = engine.embed(
        {
          batch,
          kind: "embed",
          requestId,
          promptTokens: tokens,
          secondFrom,
          ...how,
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

/** The tokens, unless there are none or more than fit. */
export function fittingTokens(service: Service, tokens: Int32Array, field: string): Int32Array {
  const { maxModelLen } = service.model.engine;
  if (tokens.length === 0) throw invalidField(field, "the input has no tokens");
  if (tokens.length > maxModelLen) {
    const message = `${field}: the input has ${tokens.length} tokens and this model's context length is ${maxModelLen} tokens; shorten it, or set truncate_prompt_tokens`;
    throw new OctavoError("context_length_exceeded", message, { param: field });
  }
  return tokens;
}
