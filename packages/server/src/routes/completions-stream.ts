import type { SequenceDelta, TokenLogprob, Tokenizer, Usage } from "@octavo/engine";
import { usageInfo, type Completion, type CompletionChoice, type OctavoNotes } from "@octavo/protocol";
import type { CompletionLogprobsBuilder } from "../generation/logprobs.js";
import { promptParts } from "../generation/prompt-parts.js";
import {
  completedReason,
  type GenerationResult,
  type LogitsDigests,
  requireUsage,
} from "../generation/run.js";
import { completionNotes } from "../generation/serving-records.js";
import { publicError } from "../http/public-error.js";
import type { RequestContext } from "../http/request-context.js";
import { SseWriter } from "../http/sse-writer.js";
import type { Service } from "../service.js";
import { logprobsBuilder, type CompletionJob, type PromptJob } from "./completions.js";
import { joinLogprobs } from "./join-logprobs.js";

/** Streams all prompts of the request at once; chunks of different choices interleave as the engine produces them. */
export async function streamCompletions(
  service: Service,
  context: RequestContext,
  job: CompletionJob,
): Promise<void> {
  const writer = new SseWriter(context.response, context.signal, service.config.stallTimeoutMs);
  const stream = new CompletionStream(service, context, job, writer);
  try {
    const ended = await Promise.all(job.prompts.map((prompt) => stream.run(prompt)));
    if (stream.wantsUsage) writer.send(stream.usageChunk(ended.map(({ usage }) => usage)));
    const digests = ended.map(({ logitsDigests }) => logitsDigests);
    const notes = completionNotes(service, job.request.octavo, job.requestId, digests);
    if (notes !== undefined) writer.send(stream.notesChunk(notes));
    await writer.flush();
    writer.end();
  } catch (thrown) {
    const error = publicError(thrown, context);
    context.abort(error);
    writer.fail(error);
    throw error;
  }
}

class CompletionStream {
  readonly wantsUsage: boolean;
  readonly #service: Service;
  readonly #context: RequestContext;
  readonly #job: CompletionJob;
  readonly #writer: SseWriter;
  #completionTokens = 0;

  constructor(service: Service, context: RequestContext, job: CompletionJob, writer: SseWriter) {
    this.#service = service;
    this.#context = context;
    this.#job = job;
    this.#writer = writer;
    this.wantsUsage = service.wantsUsage(job.request);
  }

  async run(prompt: PromptJob): Promise<Pick<GenerationResult, "usage" | "logitsDigests">> {
    const { engine } = this.#service.model;
    const choices = Array.from(
      { length: prompt.params.n },
      (_, index) => new ChoiceStream(this.#service, this.#job, prompt, index),
    );
    let promptLogprobs: readonly (TokenLogprob | undefined)[] = [];
    let usage: Usage | undefined;
    let logitsDigests: LogitsDigests | undefined;
    for await (const event of prompt.events) {
      if (event.kind === "prompt") promptLogprobs = event.promptLogprobs;
      else if (event.kind === "done") ({ usage, logitsDigests } = event);
      else {
        for (const delta of event.deltas) {
          const finish =
            delta.finishReason === undefined
              ? null
              : completedReason(engine, delta.finishReason, this.#context.signal);
          if (!this.#job.promptOnly) this.#completionTokens += delta.tokens.length;
          const choice = choices[delta.index]?.next(delta, finish, promptLogprobs);
          if (choice !== undefined) this.#writer.send(this.#chunk(choice));
        }
        await this.#writer.flush();
      }
    }
    return { usage: requireUsage(engine, usage, this.#context.signal), logitsDigests };
  }

  usageChunk(usages: readonly Usage[]): Completion {
    const sum = (count: (usage: Usage) => number): number =>
      usages.reduce((total, usage) => total + count(usage), 0);
    const completionTokens = this.#job.promptOnly ? 0 : sum((usage) => usage.completionTokens);
    return {
      ...this.#envelope([]),
      usage: usageInfo(
        sum((usage) => usage.promptTokens),
        completionTokens,
        sum((usage) => usage.cachedTokens),
      ),
    };
  }

  notesChunk(octavo: OctavoNotes): Completion {
    return { ...this.#envelope([]), octavo };
  }

  #chunk(choice: CompletionChoice): Completion {
    if (!this.wantsUsage) return this.#envelope([choice]);
    if (this.#job.request.stream_options?.continuous_usage_stats !== true)
      return { ...this.#envelope([choice]), usage: null };
    const promptTokens = this.#job.prompts.reduce((total, prompt) => total + prompt.promptTokens.length, 0);
    return { ...this.#envelope([choice]), usage: usageInfo(promptTokens, this.#completionTokens) };
  }

  #envelope(choices: readonly CompletionChoice[]): Completion {
    const { id, created, model } = this.#job;
    return {
      id,
      object: "text_completion",
      created,
      model,
      system_fingerprint: this.#service.fingerprint,
      choices,
    };
  }
}

/** The chunks of one choice; the first carries the echoed prompt. */
class ChoiceStream {
  readonly #tokenizer: Tokenizer;
  readonly #job: CompletionJob;
  readonly #prompt: PromptJob;
  readonly #index: number;
  readonly #logprobs: CompletionLogprobsBuilder | undefined;
  #hasStarted = false;

  constructor(service: Service, job: CompletionJob, prompt: PromptJob, index: number) {
    this.#tokenizer = service.model.tokenizer;
    this.#job = job;
    this.#prompt = prompt;
    this.#index = prompt.firstIndex + index;
    this.#logprobs = prompt.params.logprobs === undefined ? undefined : logprobsBuilder(service, job, prompt);
  }

  /** undefined when there is nothing to show yet. */
  next(
    delta: SequenceDelta,
    finish: "stop" | "length" | null,
    promptLogprobs: readonly (TokenLogprob | undefined)[],
  ): CompletionChoice | undefined {
    const isFirst = !this.#hasStarted;
    const hidesOutput = this.#job.promptOnly;
    const { request } = this.#job;
    const echo = isFirst && request.echo === true;
    const text = (echo ? this.#prompt.echoText : "") + (hidesOutput ? "" : delta.text);
    const tokens = hidesOutput ? [] : delta.tokens;
    const showsTokens =
      tokens.length > 0 && (this.#logprobs !== undefined || request.return_token_ids === true);
    if (text === "" && finish === null && !showsTokens) return undefined;
    this.#hasStarted = true;
    const parts = [];
    if (this.#logprobs !== undefined) {
      if (echo) parts.push(this.#logprobs.append(this.#prompt.promptTokens, promptLogprobs));
      if (tokens.length > 0) parts.push(this.#logprobs.append(tokens, delta.logprobs ?? []));
    }
    return {
      index: this.#index,
      text,
      logprobs: parts.length === 0 ? null : joinLogprobs(parts),
      finish_reason: finish !== null && hidesOutput ? "length" : finish,
      stop_reason: hidesOutput ? null : (delta.stopReason ?? null),
      ...(request.return_token_ids === true ? { token_ids: tokens } : {}),
      ...(isFirst ? promptParts(request, this.#tokenizer, this.#prompt.promptTokens) : {}),
    };
  }
}
