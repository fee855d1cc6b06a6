import { randomUUID } from "node:crypto";
import type { SamplingParams } from "@octavo/engine";
import {
  defaultCompletionTokens,
  requestLimits,
  type Completion,
  type CompletionChoice,
  type CompletionRequest,
} from "@octavo/protocol";
import { resolveMaxTokens, truncatePrompt } from "../generation/context-length.js";
import { promptLimit } from "../generation/encode-prompt.js";
import { joinLogprobs, promptLogprobs } from "../generation/logprobs.js";
import { noPromptParts, promptParts } from "../generation/prompt-parts.js";
import { checkStreamFields, inIntervals } from "../generation/stream-interval.js";
import { tokenizePrompts } from "../generation/tokenize-prompts.js";
import { compileConstraint, outputConstraint } from "../generation/output-constraint.js";
import { collectGeneration, startGenerations, type CollectedGeneration } from "../generation/run.js";
import { completionNotes, engineRequestId } from "../generation/serving-records.js";
import { toSamplingParams } from "../generation/sampling.js";
import { totalUsage } from "../account/usage.js";
import type { RequestContext } from "../http/request-context.js";
import { jsonWithLists, made, sendJsonPieces } from "../http/json-pieces.js";
import { nowSeconds, type Service } from "../service.js";
import {
  type CompletionJob,
  completionUsage,
  logprobsBuilder,
  type PromptJob,
} from "../generation/completion-job.js";
import { streamCompletions } from "./completions-stream.js";
import { emittedTokens } from "../generation/emitted-tokens.js";
import { invalidField } from "@octavo/protocol/refusal";

export async function handleCompletions(
  service: Service,
  context: RequestContext,
  request: CompletionRequest,
): Promise<void> {
  const served = service.servedModel(request.model);
  service.checkPriority(request.priority);
  checkCombinations(request);
  const constraint = outputConstraint(request);
  const fieldOf = (index: number): string => promptField(request, index);
  const encoding = {
    addSpecialTokens: request.add_special_tokens ?? true,
    maxTokens: promptLimit(service.model, request),
  };
  const given = await tokenizePrompts(service, context, request.prompt, encoding, fieldOf);
  const ready = given.map((tokens, index) => preparePrompt(service, request, tokens, fieldOf(index)));
  const { engine } = service.model;
  const terms = { ...service.faultsOf(request.octavo), ...service.termsOf(context.account, request) };
  const constrained =
    constraint === undefined
      ? {}
      : await compileConstraint(engine, constraint, terms.account.tenant, context.signal);
  const batch = {};
  const wantsDigests = request.octavo?.include_logits_digest === true && request.max_tokens !== 0;
  const requests = ready.map(({ promptTokens, params }, index) => ({
    batch,
    kind: "generate" as const,
    requestId: engineRequestId(context.octavoId, index, ready.length),
    promptTokens,
    params,
    adapter: served.adapter,
    ...constrained,
    arrivalMs: context.arrivalMs,
    ...(request.cache_salt ? { cacheSalt: request.cache_salt } : {}),
    ...(request.priority ? { priority: request.priority } : {}),
    ...(wantsDigests && { wantLogitsDigests: true }),
    ...emittedTokens(request.octavo, ready.length),
    ...terms,
  }));
  const started = await startGenerations(engine, requests, context);
  const prompts = started.map((events, index): PromptJob => {
    const { promptTokens, params } = requests[index]!;
    const watched = context.account.content?.watch(events, (sequences) => ({
      kind: "completions",
      request: { prompt: service.model.tokenizer.decode(promptTokens, { skipSpecialTokens: true }) },
      answer: { choices: sequences.map(({ text, finishReason }) => ({ text, finish_reason: finishReason })) },
    }));
    return {
      promptTokens,
      params,
      events: inIntervals(watched ?? events, request),
      echoText: echoText(service, request, promptTokens),
      firstIndex: index * params.n,
    };
  });
  const job: CompletionJob = {
    id: `cmpl-${request.request_id ?? randomUUID()}`,
    requestId: context.octavoId,
    created: nowSeconds(),
    model: served.name,
    request,
    prompts,
    promptOnly: request.max_tokens === 0,
  };
  context.account.responseId = job.id;
  if (request.stream === true) {
    await streamCompletions(service, context, job);
    return;
  }
  const results = await Promise.all(
    prompts.map((prompt) => collectGeneration(engine, prompt.events, prompt.params.n, context.signal)),
  );
  const pieces = completionPieces(service, job, results);
  await sendJsonPieces(context, pieces, service.config.stallTimeoutMs);
}

function echoText(service: Service, request: CompletionRequest, promptTokens: Int32Array): string {
  if (request.echo !== true) return "";
  return service.model.tokenizer.decode(promptTokens, {
    skipSpecialTokens: request.skip_special_tokens ?? true,
  });
}

interface ReadyPrompt {
  readonly promptTokens: Int32Array;
  readonly params: SamplingParams;
}

function preparePrompt(
  service: Service,
  request: CompletionRequest,
  given: Int32Array,
  field: string,
): ReadyPrompt {
  const { model, config } = service;
  const promptTokens = truncatePrompt(
    given,
    request.truncate_prompt_tokens,
    request.truncation_side,
    model.engine.maxModelLen,
  );
  const requested = request.max_tokens === 0 ? 1 : (request.max_tokens ?? undefined);
  const budget = {
    requested,
    fallback: model.generation.maxNewTokens ?? defaultCompletionTokens,
    field: "max_tokens",
  };
  const echoesLogprobs = request.echo === true ? (request.logprobs ?? undefined) : undefined;
  const params = toSamplingParams(request, {
    defaults: model.generation,
    vocabSize: model.tokenizer.vocabSize,
    maxModelLen: model.engine.maxModelLen,
    numPromptTokens: promptTokens.length,
    maxLogprobs: config.maxLogprobs,
    maxTokens: resolveMaxTokens(promptTokens.length, model.engine.maxModelLen, budget, field),
    logprobs: request.logprobs ?? undefined,
    logprobsField: "logprobs",
    promptLogprobs: request.prompt_logprobs ?? echoesLogprobs,
  });
  return { promptTokens, params };
}

function completionPieces(
  service: Service,
  job: CompletionJob,
  results: readonly CollectedGeneration[],
): Iterable<string> {
  const makers = job.prompts.flatMap((prompt, index) => {
    const result = results[index];
    return result === undefined ? [] : choiceMakers(service, job, prompt, result);
  });
  const head: Omit<Completion, "choices" | "usage"> = {
    id: job.id,
    object: "text_completion",
    created: job.created,
    model: job.model,
    system_fingerprint: service.fingerprint,
  };
  const digests = results.map(({ logitsDigests }) => logitsDigests);
  const notes = completionNotes(service, job.request.octavo, job.requestId, digests);
  const tail: Pick<Completion, "usage" | "octavo"> = {
    usage: completionUsage(job, totalUsage(results.map(({ usage }) => usage))),
    ...(notes === undefined ? {} : { octavo: notes }),
  };
  return jsonWithLists(head, { choices: made(makers) }, tail);
}

function choiceMakers(
  service: Service,
  job: CompletionJob,
  prompt: PromptJob,
  result: CollectedGeneration,
): readonly (() => CompletionChoice)[] {
  const { request } = job;
  const showsIds = request.return_token_ids === true;
  return result.sequences.map((sequence, index) => () => ({
    index: prompt.firstIndex + index,
    text: prompt.echoText + (job.promptOnly ? "" : sequence.text),
    logprobs: choiceLogprobs(service, job, prompt, result, index),
    finish_reason: job.promptOnly ? "length" : (sequence.finishReason ?? "stop"),
    stop_reason: job.promptOnly ? null : (sequence.stopReason ?? null),
    prompt_logprobs:
      typeof request.prompt_logprobs === "number" && result.promptLogprobs !== undefined
        ? promptLogprobs(result.promptLogprobs, service.tokenTexts)
        : null,
    token_ids: showsIds ? (job.promptOnly ? [] : sequence.tokens) : null,
    ...noPromptParts,
    ...promptParts(request, service.model.tokenizer, prompt.promptTokens),
  }));
}

function choiceLogprobs(
  service: Service,
  job: CompletionJob,
  prompt: PromptJob,
  result: CollectedGeneration,
  index: number,
): CompletionChoice["logprobs"] {
  const sequence = result.sequences[index];
  if (prompt.params.logprobs === undefined || sequence === undefined) return null;
  const builder = logprobsBuilder(service, job, prompt);
  const parts = [];
  if (job.request.echo === true) parts.push(builder.append(prompt.promptTokens, result.promptLogprobs ?? []));
  if (!job.promptOnly) parts.push(builder.append(sequence.tokens, sequence.logprobs));
  return joinLogprobs(parts);
}

function promptField(request: CompletionRequest, index: number): string {
  return request.prompt.length === 1 ? "prompt" : `prompt[${index}]`;
}

function checkCombinations(request: CompletionRequest): void {
  checkStreamFields(request);
  const numSequences = request.prompt.length * (request.n ?? 1);
  if (numSequences > requestLimits.totalSequences) {
    const counts = `${request.prompt.length} prompts with n = ${request.n} are ${numSequences}`;
    throw invalidField(
      "n",
      `at most ${requestLimits.totalSequences} choices are allowed in one request; ${counts}`,
    );
  }
  if (request.max_tokens === 0 && request.echo !== true)
    throw invalidField("max_tokens", "0 is only allowed together with echo");
}
