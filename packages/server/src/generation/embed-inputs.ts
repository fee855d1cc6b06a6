import type { EmbeddingsRequest, PromptInput } from "@octavo/protocol";
import { promptOf } from "@octavo/engine/parts";
import type { RequestContext } from "../http/request-context.js";
import type { ServedModel, Service } from "../service.js";
import { truncatePrompt } from "./context-length.js";
import { promptLimit } from "./encode-prompt.js";
import { fittingTokens, type PooledVector, type PoolingFields, runPooling } from "./run-pooling.js";
import { tokenizePrompts } from "./tokenize-prompts.js";
import { invalidField } from "@octavo/protocol/refusal";

type EmbeddingFields = PoolingFields &
  Partial<Pick<EmbeddingsRequest, "add_special_tokens" | "normalize" | "prompt_name">>;

/** The embeddings of texts or token ids, in order, as one batch. `fieldOf` names an input in errors. */
export async function embedInputs(
  service: Service,
  context: RequestContext,
  served: ServedModel,
  inputs: readonly PromptInput[],
  options: EmbeddingFields,
  fieldOf: (index: number) => string,
): Promise<readonly PooledVector[]> {
  const { engine, config } = service.model;
  if (config.classifier !== undefined)
    throw invalidField(
      "model",
      "it has a head that classifies, and gives no embeddings; use /classify, /score or /rerank",
    );
  const { pooling } = service.config;
  const { embedding: declared, encoder } = config;
  const prompt = promptOf(declared, options.prompt_name ?? undefined);
  const prompted = inputs.map((input): PromptInput =>
    input.kind === "text" && prompt !== "" ? { kind: "text", text: prompt + input.text } : input,
  );
  const encoding = {
    addSpecialTokens: options.add_special_tokens ?? true,
    maxTokens: promptLimit(service.model, options),
  };
  const given = await tokenizePrompts(service, context, prompted, encoding, fieldOf);
  const { maxModelLen } = engine;
  const { truncate_prompt_tokens: wanted, truncation_side: side } = options;
  const prompts = given.map((tokens, index) => {
    const cut = truncatePrompt(tokens, wanted === -1 ? maxModelLen : wanted, side, maxModelLen);
    return { tokens: fittingTokens(service, cut, fieldOf(index)) };
  });
  const how = {
    pooling: pooling === "auto" ? (declared?.pooling ?? (encoder === undefined ? "last" : "mean")) : pooling,
    normalize: options.normalize ?? declared?.normalize ?? true,
  } as const;
  return runPooling(service, context, served, prompts, how, options);
}
