import { OctavoError } from "@octavo/protocol/errors";
import type { Deadlines, EmbeddingRequest, GenerationRequest } from "../api.js";
import { checkRequestFaults } from "../faults/check-fault.js";
import type { Account } from "../scheduler/account.js";
import { seesAhead } from "../scheduler/prompt-image.js";

export interface RequestLimits {
  readonly maxModelLen: number;
  readonly vocabSize: number;
  readonly hasPriorities: boolean;
  readonly hasFaults: boolean;
  readonly hasHead: boolean;
  /** Tokens of the largest image that a step certainly holds; 0 where images are not taken. */
  readonly maxImageTokens: number;
  /** Of the rows that stand for an image. */
  readonly hiddenSize: number;
}

/** Throws `invalid_request` or `context_length_exceeded` unless the engine can complete the request. */
export function checkGenerationRequest(request: GenerationRequest, limits: RequestLimits): void {
  if (!limits.hasHead)
    throw invalid("This model has no output head: it gives embeddings, but no text.", "model");
  const { promptTokens, params } = request;
  checkPrompt(promptTokens, limits, limits.maxModelLen - 1);
  if (params.maxTokens !== undefined && promptTokens.length + params.maxTokens > limits.maxModelLen) {
    throw new OctavoError(
      "context_length_exceeded",
      `This model's maximum context length is ${limits.maxModelLen} tokens. However, your request has ${promptTokens.length} ` +
        `input tokens and asks for ${params.maxTokens} output tokens (${promptTokens.length + params.maxTokens} in all). ` +
        `Shorten the prompt or ask for at most ${limits.maxModelLen - promptTokens.length} output tokens.`,
      { param: "max_tokens" },
    );
  }
  checkEmitted(request, limits);
  checkImages(request, limits);
  checkTerms(request);
  const { priority = 0, promptLogprobsFrom = 1, cacheSalt, grammar } = request;
  if (grammar !== undefined && grammar.maskWords !== Math.ceil(limits.vocabSize / 32))
    throw invalid("The grammar was compiled for another vocabulary; compile it with this engine.", "grammar");
  const { thinking } = request;
  if (thinking !== undefined && (!Number.isSafeInteger(thinking.maxTokens) || thinking.maxTokens < 0))
    throw invalid(
      `The thinking budget must be an integer of at least 0, not ${thinking.maxTokens}.`,
      "thinking",
    );
  if (thinking !== undefined && thinking.endTokens.length === 0)
    throw invalid("The thinking budget needs the tokens that end reasoning.", "thinking");
  if (!Number.isSafeInteger(priority))
    throw invalid(`priority must be an integer, not ${priority}.`, "priority");
  if (priority !== 0 && !limits.hasPriorities) {
    throw invalid(
      "priority needs the engine to be started with the scheduling policy 'priority'.",
      "priority",
    );
  }
  if (
    !(
      Number.isSafeInteger(promptLogprobsFrom) &&
      promptLogprobsFrom >= 1 &&
      promptLogprobsFrom <= promptTokens.length
    )
  ) {
    throw invalid(
      `prompt_logprobs_from must be a position of the prompt from 1 on, at most its length, not ${promptLogprobsFrom}.`,
      "prompt_logprobs_from",
    );
  }
  if (request.faults !== undefined) {
    if (!limits.hasFaults) {
      const message = "Faults need fault injection to be enabled (--enable-fault-injection).";
      throw new OctavoError("unsupported_parameter", message, { param: "octavo.faults" });
    }
    checkRequestFaults(request.faults);
  }
  if (cacheSalt === "")
    throw invalid("cache_salt must not be empty; leave it out to share the cache.", "cache_salt");
}

function checkImages({ images = [], promptTokens }: GenerationRequest, limits: RequestLimits): void {
  const { maxImageTokens, hiddenSize } = limits;
  if (images.length > 0 && maxImageTokens <= 0)
    throw invalid("This engine takes no images: steps have no rows for them.", "images");
  let end = 0;
  for (const [index, image] of images.entries()) {
    const { start, numTokens, rows, grid, added } = image;
    const fail = (problem: string): OctavoError => invalid(`Image ${index} ${problem}.`, "images");
    if (!Number.isSafeInteger(start) || !Number.isSafeInteger(numTokens) || numTokens < 1 || start < end)
      throw fail(
        `has ${numTokens} tokens from position ${start} on; images must have tokens, each behind the one before`,
      );
    end = start + numTokens;
    if (end > promptTokens.length)
      throw fail(`ends at ${end}, behind the prompt's ${promptTokens.length} tokens`);
    if (rows.length !== numTokens * hiddenSize)
      throw fail(`has ${rows.length} values; ${numTokens} rows of ${hiddenSize} are needed`);
    if ((added?.length ?? 0) % rows.length !== 0)
      throw fail(`adds ${added?.length} values to its ${rows.length}`);
    if (grid !== undefined && grid.rows * grid.columns !== numTokens)
      throw fail(`has ${grid.rows} x ${grid.columns} tokens, not ${numTokens}`);
    if (seesAhead(image) && numTokens > maxImageTokens)
      throw fail(
        `has ${numTokens} tokens, and a step certainly holds ${maxImageTokens}; raise max_num_batched_tokens`,
      );
  }
}

function checkEmitted(
  { emittedTokens, promptTokens, params, wantLogitsDigests }: GenerationRequest,
  { maxModelLen, vocabSize }: RequestLimits,
): void {
  if (emittedTokens === undefined) return;
  const param = "octavo.emitted_token_ids";
  if (params.n !== 1 || wantLogitsDigests === true)
    throw invalid("emitted_token_ids continues one output: n must be 1, without digests of logits.", param);
  const most = Math.min(params.maxTokens ?? maxModelLen, maxModelLen - promptTokens.length) - 1;
  if (emittedTokens.length > most)
    throw invalid(
      `emitted_token_ids has ${emittedTokens.length} tokens; at most ${most} leave room for one more.`,
      param,
    );
  if (emittedTokens.some((token) => token < 0 || token >= vocabSize))
    throw invalid(`emitted_token_ids has a token outside the vocabulary (0 to ${vocabSize - 1}).`, param);
}

export function checkEmbeddingRequest(request: EmbeddingRequest, limits: RequestLimits): void {
  checkPrompt(request.promptTokens, limits, limits.maxModelLen);
  checkTerms(request);
}

const maxTenant = 256;
const lowestLane = 255;

function checkTerms({
  account,
  deadlines = {},
}: {
  readonly account?: Account;
  readonly deadlines?: Deadlines;
}): void {
  if (account !== undefined) checkAccount(account);
  for (const [name, ms] of Object.entries(deadlines)) {
    if (ms === undefined || (Number.isFinite(ms) && ms > 0)) continue;
    throw invalid(`The deadline ${name} must be a number of milliseconds above 0, not ${ms}.`, "deadlines");
  }
}

function checkAccount({ tenant, lane = 0, weight = 1, maxQueuedRequests, maxQueuedTokens }: Account): void {
  if (tenant.length === 0 || tenant.length > maxTenant)
    throw invalid(`A tenant's name must have 1 to ${maxTenant} characters, not ${tenant.length}.`, "account");
  if (!(Number.isSafeInteger(lane) && lane >= 0 && lane <= lowestLane))
    throw invalid(`A lane must be an integer from 0 to ${lowestLane}, not ${lane}.`, "account");
  if (!(weight > 0 && weight <= 1e6))
    throw invalid(`A tenant's weight must be above 0, and at most 1000000, not ${weight}.`, "account");
  for (const bound of [maxQueuedRequests, maxQueuedTokens]) {
    if (bound !== undefined && !(Number.isSafeInteger(bound) && bound >= 0))
      throw invalid(`A bound of a tenant's queue must be an integer of at least 0, not ${bound}.`, "account");
  }
}

function checkPrompt(promptTokens: Int32Array, limits: RequestLimits, maxTokens: number): void {
  if (promptTokens.length === 0)
    throw invalid("The prompt is empty: it must have at least one token.", "prompt");
  if (promptTokens.length > maxTokens) {
    throw new OctavoError(
      "context_length_exceeded",
      `This model's maximum context length is ${limits.maxModelLen} tokens. However, your request has ${promptTokens.length} ` +
        `input tokens${maxTokens < limits.maxModelLen ? ", which leaves no room for output" : ""}. ` +
        `Please reduce the length of the input to at most ${maxTokens} tokens.`,
      { param: "prompt" },
    );
  }
  const stray = promptTokens.findIndex((token) => token < 0 || token >= limits.vocabSize);
  if (stray !== -1) {
    throw invalid(
      `Token id ${promptTokens[stray]} at position ${stray} of the prompt is outside the vocabulary (0 to ${limits.vocabSize - 1}).`,
      "prompt",
    );
  }
}

function invalid(message: string, param: string): OctavoError {
  return new OctavoError("invalid_request", message, { param });
}
