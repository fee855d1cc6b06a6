import { OctavoError } from "@octavo/protocol";
import { invalidField } from "@octavo/protocol/refusal";

export interface TokenBudget {
  /** As requested; undefined if the request has no limit. */
  readonly requested: number | undefined;
  /** Used when the request has no limit; reduced to what fits. */
  readonly fallback: number | undefined;
  readonly field: string;
}

/**
 * How many tokens may be generated. A prompt that leaves no room for one token, or a request for more tokens than fit, is an
 * error with all counts: nothing is truncated silently.
 */
export function resolveMaxTokens(
  promptTokens: number,
  maxModelLen: number,
  budget: TokenBudget,
  promptField: string,
): number | undefined {
  if (promptTokens === 0) {
    throw invalidField(promptField, "the prompt has no tokens");
  }
  const room = maxModelLen - promptTokens;
  if (room < 1) {
    throw new OctavoError(
      "context_length_exceeded",
      `${promptField}: the prompt has ${promptTokens} tokens and this model's context length is ${maxModelLen} tokens, ` +
        "which leaves no room for an answer; shorten the prompt, or set truncate_prompt_tokens",
      { param: promptField },
    );
  }
  if (budget.requested !== undefined && budget.requested > room) {
    throw new OctavoError(
      "context_length_exceeded",
      `${budget.field}: this model's context length is ${maxModelLen} tokens; the prompt has ${promptTokens} and ` +
        `${budget.field} asks for ${budget.requested}, together ${promptTokens + budget.requested}; ask for at most ${room}`,
      { param: budget.field },
    );
  }
  return budget.requested ?? (budget.fallback === undefined ? undefined : Math.min(budget.fallback, room));
}

/**
 * Truncates a prompt to `truncate_prompt_tokens`: keeps its last tokens, or with side `right` its first. -1 leaves room for one
 * generated token.
 */
export function truncatePrompt(
  tokens: Int32Array,
  limit: number | null | undefined,
  side: "left" | "right" | null | undefined,
  maxModelLen: number,
): Int32Array {
  if (limit === null || limit === undefined) return tokens;
  const length = limit === -1 ? maxModelLen - 1 : limit;
  if (tokens.length <= length) return tokens;
  return side === "right" ? tokens.slice(0, length) : tokens.slice(tokens.length - length);
}
