import type { SequenceDelta, TokenLogprob, Tokenizer, Usage } from "@octavo/engine";
import { usageInfo, type Completion, type CompletionChoice, type OctavoNotes } from "@octavo/protocol";
import { type CompletionLogprobsBuilder, joinLogprobs } from "../generation/logprobs.js";
import { promptParts } from "../generation/prompt-parts.js";
import { type GenerationEnd, readGeneration } from "../generation/run.js";
import { completionNotes } from "../generation/serving-records.js";
import { totalUsage } from "../account/usage.js";
import type { RequestContext } from "../http/request-context.js";
import { type SseWriter, streamEvents } from "../http/sse-writer.js";
import type { Service } from "../service.js";
import {
  type CompletionJob,
  completionUsage,
  logprobsBuilder,
  type PromptJob,
} from "../generation/completion-job.js";

/** Streams all prompts of the request at once; chunks of different choices interleave as the engine produces them. */
export async function streamCompletions(
  service: Service,
  context: RequestContext,
  job: CompletionJob,
): Promise<void> {
  await streamEvents(context, service.config.stallTimeoutMs, async (writer) => {
    const stream = new CompletionStream(service, context, job, writer);
    const ended = await Promise.all(job.prompts.map((prompt) => stream.run(prompt)));
    if (stream.wantsUsage) writer.send(stream.usageChunk(totalUsage(ended.map(({ usage }) => usage))));
    const digests = ended.map(({ logitsDigests }) => logitsDigests);
    const notes = completionNotes(service, job.request.octavo, job.requestId, digests);
    if (notes !== undefined) writer.send(stream.notesChunk(notes));
    await writer.flush();
    writer.end();
  });
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

  run(prompt: PromptJob): Promise<GenerationEnd> {
    const choices = Array.from(
      { length: prompt.params.n },
      (_, index) => new ChoiceStream(this.#service, this.#job, prompt, index),
    );
    return readGeneration(this.#service.model.engine, prompt.events, this.#context.signal, {
      onDelta: (delta, finish, promptLogprobs = []) => {
        if (!this.#job.promptOnly) this.#completionTokens += delta.tokens.length;
        const choice = choices[delta.index]?.next(delta, finish ?? null, promptLogprobs);
        if (choice !== undefined) this.#writer.send(this.#chunk(choice));
      },
      flush: () => this.#writer.flush(),
    });
  }

  usageChunk(usage: Usage): Completion {
    return { ...this.#envelope([]), usage: completionUsage(this.#job, usage) };
  }

  notesChunk(octavo: OctavoNotes): Completion {
    return { ...this.#envelope([]), octavo };
  }

  #chunk(choice: CompletionChoice): Completion {
    if (!this.wantsUsage) return this.#envelope([choice]);
    if (!this.#service.countsUsage(this.#job.request)) return { ...this.#envelope([choice]), usage: null };
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

  /** Undefined when there is nothing to send yet. */
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
