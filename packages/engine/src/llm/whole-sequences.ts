import { OctavoError } from "@octavo/protocol/errors";
import type { ModelConfig } from "@octavo/artifacts/program/model-config";
import type { LoadOptions, ResolvedLoadOptions } from "./load-options.js";

/** Tokens of a step that are given without being asked for: enough for a text of the longest context that is usual. */
const mostByDefault = 8_192;

/**
 * Options as an encoder runs under them: a step holds whole texts, of which nothing is kept. So no text is longer than a step.
 * @throws OctavoError `invalid_option` for what an encoder cannot do
 */
export function encoderOptions(
  options: ResolvedLoadOptions,
  asked: LoadOptions,
  { maxPositionEmbeddings: limit }: Pick<ModelConfig, "maxPositionEmbeddings">,
): ResolvedLoadOptions {
  const refuse = (param: string, problem: string): never => {
    throw new OctavoError("invalid_option", `${param} ${problem}`, { param });
  };
  if (asked.speculativeConfig !== undefined)
    refuse("speculative_config", "is for models that give text; this one is an encoder");
  if (asked.enableLora === true) refuse("enable_lora", "is for decoders; this model is an encoder");
  for (const param of ["enableChunkedPrefill", "enablePrefixCaching"] as const) {
    if (asked[param] === true)
      options.onWarning?.(`${param} has no effect: an encoder takes whole texts and keeps nothing of them.`);
  }
  const wanted = Math.min(options.maxModelLen ?? limit, limit);
  const maxNumBatchedTokens =
    asked.maxNumBatchedTokens ?? Math.max(options.maxNumBatchedTokens, Math.min(wanted, mostByDefault));
  if (options.maxModelLen !== undefined && options.maxModelLen > maxNumBatchedTokens) {
    refuse(
      "max_model_len",
      `is ${options.maxModelLen}, but a step takes ${maxNumBatchedTokens} tokens, and an encoder takes a text in one step; ` +
        "raise max_num_batched_tokens or lower max_model_len",
    );
  }
  const maxModelLen = options.maxModelLen ?? Math.min(limit, maxNumBatchedTokens);
  if (maxModelLen < wanted) {
    options.onWarning?.(
      `A step takes ${maxNumBatchedTokens} tokens, so that is the longest text; the model could take ${limit}. ` +
        "Raise max_num_batched_tokens to use them.",
    );
  }
  return {
    ...options,
    maxModelLen,
    maxNumBatchedTokens,
    enableChunkedPrefill: false,
    enablePrefixCaching: false,
  };
}

/** Sequences of full length that take as many blocks as those of one step, each of which may fill its last block in part. */
export function sequencesOfStep({
  maxNumBatchedTokens,
  maxNumSeqs,
  blockSize,
  maxModelLen = 1,
}: Pick<ResolvedLoadOptions, "maxNumBatchedTokens" | "maxNumSeqs" | "blockSize" | "maxModelLen">): number {
  // A hundredth is kept free.
  return Math.ceil((1.02 * (maxNumBatchedTokens + maxNumSeqs * blockSize)) / maxModelLen) + 1;
}
