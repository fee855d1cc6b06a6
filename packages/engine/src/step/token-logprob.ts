import type { RowResult } from "@octavo/kernels";
import { OctavoError } from "@octavo/protocol/errors";
import type { TokenLogprob } from "../api.js";

/** A row's logprobs: the alternatives, then those of `logprobIds` that are not among them. */
export function tokenLogprob(result: RowResult, logprobIds: readonly number[] | undefined): TokenLogprob {
  const top: { token: number; logprob: number }[] = [];
  const { topTokens, topLogprobs, idLogprobs } = result;
  for (const [index, token] of (topTokens ?? []).entries())
    top.push({ token, logprob: topLogprobs?.[index] ?? Number.NaN });
  for (const [index, token] of (logprobIds ?? []).entries()) {
    if (!top.some((entry) => entry.token === token))
      top.push({ token, logprob: idLogprobs?.[index] ?? Number.NaN });
  }
  return { token: result.token, logprob: result.logprob ?? Number.NaN, rank: result.rank ?? 0, top };
}

/** Throws the error that the backend reports for a row; it fails only its own request. */
export function checkRowError({ error }: RowResult): void {
  if (error === "no_token_allowed") {
    throw new OctavoError(
      "invalid_request",
      "No token is left to choose from: allowed_token_ids, bad_words, min_tokens, logit_bias and the constraint on the output exclude all of them.",
      { param: "allowed_token_ids" },
    );
  }
  if (error === "non_finite_logits") {
    throw new OctavoError("internal_error", "The model's logits for this request are not finite.");
  }
}

/** The digest of a row's logits. Throws `not_implemented` if the backend gives none. */
export function logitsDigest({ digest }: RowResult): string {
  if (digest !== undefined) return digest;
  throw new OctavoError("not_implemented", "This backend gives no digests of logits.");
}

/** As `checkRowError`; also throws unless the row has a token of the vocabulary. */
export function checkTokenRow(result: RowResult, vocabSize: number): void {
  checkRowError(result);
  const { token, logprob } = result;
  if (!Number.isInteger(token) || token < 0 || token >= vocabSize || Number.isNaN(logprob)) {
    throw new OctavoError(
      "internal_error",
      `The model gave token ${token} with logprob ${logprob} for this request.`,
    );
  }
}
