import { invalidField } from "@octavo/protocol/refusal";
import type { RequestContext } from "../http/request-context.js";
import type { Service } from "../service.js";
import type { PromptEncoding } from "./encode-prompt.js";
import { fittingTokens, type PooledPrompt } from "./run-pooling.js";
import { tokenizePrompts } from "./tokenize-prompts.js";

/** The words that Qwen3-Reranker was trained with (its model card). */
const before =
  "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct provided. " +
  'Note that the answer can only be "yes" or "no".<|im_end|>\n<|im_start|>user\n';
const instruct = "Given a web search query, retrieve relevant passages that answer the query";
const after = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n";

export interface YesNoPair {
  readonly query: string;
  readonly document: string;
  /** What errors call the document. */
  readonly field: string;
}

/** Prompts that ask whether a document answers a query. With `limit`, documents lose their ends until the prompts fit. */
export async function yesNoPrompts(
  service: Service,
  context: RequestContext,
  pairs: readonly YesNoPair[],
  encoding: PromptEncoding,
  limit: number | undefined,
): Promise<PooledPrompt[]> {
  const { tokenizer } = service.model;
  const [start, end] = [before, after].map((text) => tokenizer.encode(text, { addSpecialTokens: false }));
  const frame = (start?.length ?? 0) + (end?.length ?? 0);
  if (limit !== undefined && limit <= frame)
    throw invalidField("truncate_prompt_tokens", `the question alone takes ${frame} tokens; give more`);
  const questions = pairs.map(({ query, document }) => ({
    kind: "text" as const,
    text: `<Instruct>: ${instruct}\n<Query>: ${query}\n<Document>: ${document}`,
  }));
  const fieldOf = (index: number): string => pairs[index]?.field ?? "documents";
  const encoded = await tokenizePrompts(service, context, questions, encoding, fieldOf);
  return encoded.map((ids, index) => {
    const kept = limit === undefined ? ids : ids.slice(0, limit - frame);
    const tokens = Int32Array.from([...(start ?? []), ...kept, ...(end ?? [])]);
    return { tokens: fittingTokens(service, tokens, fieldOf(index)) };
  });
}
