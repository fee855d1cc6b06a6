import type { ClassifierConfig } from "@octavo/engine";
import type { PromptInput } from "@octavo/protocol";
import { invalidField } from "@octavo/protocol/refusal";
import type { RequestContext } from "../http/request-context.js";
import type { ServedModel, Service } from "../service.js";
import { truncatePrompt } from "./context-length.js";
import { promptLimit } from "./encode-prompt.js";
import {
  fittingTokens,
  type PooledPrompt,
  type PooledVector,
  type PoolingFields,
  runPooling,
} from "./run-pooling.js";
import { tokenizePrompts } from "./tokenize-prompts.js";
import { yesNoPrompts } from "./yes-no-prompts.js";

type ClassifyFields = PoolingFields & {
  /** False leaves the scores as the head gives them. */
  readonly use_activation?: boolean | null | undefined;
  readonly add_special_tokens?: boolean | null | undefined;
};

/** Texts by what a score or a rerank request calls them. */
export interface NamedText {
  readonly text: string;
  readonly field: string;
}

/** Probability of each label, for each input. */
export async function classifyInputs(
  service: Service,
  context: RequestContext,
  served: ServedModel,
  classifier: ClassifierConfig,
  inputs: readonly PromptInput[],
  options: ClassifyFields,
  fieldOf: (index: number) => string,
): Promise<readonly PooledVector[]> {
  const encoding = {
    addSpecialTokens: options.add_special_tokens ?? true,
    maxTokens: promptLimit(service.model, options),
  };
  const { maxModelLen } = service.model.engine;
  const { truncate_prompt_tokens: wanted, truncation_side: side } = options;
  const given = await tokenizePrompts(service, context, inputs, encoding, fieldOf);
  const prompts = given.map((tokens, index) => {
    const cut = truncatePrompt(tokens, wanted === -1 ? maxModelLen : wanted, side, maxModelLen);
    return { tokens: fittingTokens(service, cut, fieldOf(index)) };
  });
  return classified(service, context, served, classifier, prompts, options);
}

/**
 * Scores each pair with a head of one label. Pairs are truncated as the tokenizer truncates them: the longer text first.
 * @throws OctavoError `invalid_request` for a head of several labels
 */
export async function scoreTextPairs(
  service: Service,
  context: RequestContext,
  served: ServedModel,
  classifier: ClassifierConfig,
  pairs: readonly (readonly [NamedText, NamedText])[],
  options: ClassifyFields,
): Promise<readonly PooledVector[]> {
  if (classifier.labels.length !== 1) {
    throw invalidField(
      "model",
      `its head has ${classifier.labels.length} labels, and a score is that of a head with one; use /classify`,
    );
  }
  const { model } = service;
  const { maxModelLen } = model.engine;
  const { truncate_prompt_tokens: wanted } = options;
  const limit = wanted === undefined || wanted === null ? undefined : wanted === -1 ? maxModelLen : wanted;
  if (limit !== undefined && options.truncation_side === "left")
    throw invalidField(
      "truncation_side",
      "pairs of texts lose the ends of their texts: only right is possible",
    );
  const encoding = { addSpecialTokens: false, maxTokens: promptLimit(model, options) };
  if (classifier.between !== undefined) {
    const asked = pairs.map(([{ text: query }, { text: document, field }]) => ({ query, document, field }));
    const prompts = await yesNoPrompts(service, context, asked, encoding, limit);
    return classified(service, context, served, classifier, prompts, options);
  }
  const ids = new Map<string, Int32Array>();
  const texts = [...new Map(pairs.flat().map((named) => [named.text, named])).values()];
  const encoded = await tokenizePrompts(
    service,
    context,
    texts.map(({ text }) => ({ kind: "text", text })),
    encoding,
    (index) => texts[index]?.field ?? "text",
  );
  for (const [index, { text }] of texts.entries()) ids.set(text, encoded[index] ?? new Int32Array(0));
  const idsOf = ({ text }: NamedText): Int32Array => ids.get(text) ?? new Int32Array(0);
  const prompts = pairs.map(([left, right]) => {
    const pair = model.tokenizer.joinPair(idsOf(left), idsOf(right), limit);
    return { tokens: fittingTokens(service, pair.tokens, right.field), secondFrom: pair.secondFrom };
  });
  return classified(service, context, served, classifier, prompts, options);
}

async function classified(
  service: Service,
  context: RequestContext,
  served: ServedModel,
  classifier: ClassifierConfig,
  prompts: readonly PooledPrompt[],
  options: ClassifyFields,
): Promise<readonly PooledVector[]> {
  const how = { pooling: classifier.pooling, normalize: false };
  const results = await runPooling(service, context, served, prompts, how, options);
  if (options.use_activation === false) return results;
  return results.map((result) => ({ ...result, embedding: activate(classifier, result.embedding) }));
}

function activate({ activation }: ClassifierConfig, scores: Float32Array): Float32Array {
  switch (activation) {
    case "identity":
      return scores;
    case "sigmoid":
      return scores.map((score) => 1 / (1 + Math.exp(-score)));
    case "softmax": {
      const most = Math.max(...scores);
      const total = scores.reduce((sum, score) => sum + Math.exp(score - most), 0);
      return scores.map((score) => Math.exp(score - most) / total);
    }
  }
}
