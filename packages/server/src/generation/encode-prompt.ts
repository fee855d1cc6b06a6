import type { LanguageModel } from "@octavo/engine";
import { OctavoError } from "@octavo/protocol";
import type { Caller } from "./run.js";

export interface PromptEncoding {
  readonly addSpecialTokens: boolean;
  /** A longer prompt cannot be served; undefined where any length may be, because it is truncated or only counted. */
  readonly maxTokens: number | undefined;
}

/**
 * The tokens of a prompt. One that certainly does not fit is rejected with `context_length_exceeded` before it is tokenised to
 * its end; `field` names it in that error.
 */
export async function encodePrompt(
  model: LanguageModel,
  text: string,
  encoding: PromptEncoding,
  { account, signal }: Pick<Caller, "account" | "signal">,
  field: string,
): Promise<Int32Array> {
  try {
    const tokens = await model.tokenizer.encodeAsync(text, { ...encoding, signal, tenant: account.tenant });
    account.countedTokens += tokens.length;
    return tokens;
  } catch (error) {
    if (!(error instanceof OctavoError && error.code === "context_length_exceeded")) throw error;
    account.countedTokens += (encoding.maxTokens ?? 0) + 1;
    throw new OctavoError(
      error.code,
      `${field}: ${error.message} Shorten it, or set truncate_prompt_tokens.`,
      { param: field, cause: error },
    );
  }
}

/** The limit of a prompt's tokens where the request does not truncate it. */
export function promptLimit(
  model: LanguageModel,
  { truncate_prompt_tokens: truncated }: { readonly truncate_prompt_tokens?: number | null | undefined },
): number | undefined {
  return truncated === undefined || truncated === null ? model.engine.maxModelLen : undefined;
}
