import type { SequenceDelta, Usage } from "@octavo/engine";
import {
  usageInfo,
  type ChatChunkChoice,
  type ChatCompletionChunk,
  type ChatDelta,
  type OctavoNotes,
  type UsageInfo,
} from "@octavo/protocol";
import { type ChatJob, finishReason, readDelta, reasoningTokens } from "../generation/chat-job.js";
import type { ChatReader } from "@octavo/engine/chat";
import { chatLogprobs } from "../generation/logprobs.js";
import { promptParts } from "../generation/prompt-parts.js";
import { readGeneration } from "../generation/run.js";
import { chatNotes, wantsNotes } from "../generation/serving-records.js";
import { wireUsage } from "../account/usage.js";
import type { RequestContext } from "../http/request-context.js";
import { streamEvents } from "../http/sse-writer.js";
import type { Service } from "../service.js";

/**
 * Answers with chunks: the role of every choice with the first output, content as it comes, a finish chunk per choice,
 * usage without choices if requested, `[DONE]`. A failure becomes an error event without `[DONE]`.
 */
export async function streamChat(service: Service, context: RequestContext, job: ChatJob): Promise<void> {
  const { octavo } = job.request;
  const chunks = new ChatChunks(service, job);
  await streamEvents(context, service.config.stallTimeoutMs, async (writer) => {
    const end = await readGeneration(service.model.engine, job.events, context.signal, {
      onDelta: (delta, finish) => {
        for (const chunk of chunks.ofDelta(delta, finish)) writer.send(chunk);
      },
      flush: () => writer.flush(),
    });
    if (service.wantsUsage(job.request)) writer.send(chunks.ofUsage(end.usage));
    if (wantsNotes(octavo))
      writer.send(chunks.ofNotes(chatNotes(service, octavo, job.requestId, end.logitsDigests)));
    await writer.flush();
    writer.end();
  });
}

/** Turns engine deltas into chunks, and keeps the counts that `continuous_usage_stats` shows. */
class ChatChunks {
  readonly #service: Service;
  readonly #job: ChatJob;
  readonly #usageInChunks: "none" | "null" | "counts";
  readonly #withTokenIds: boolean;
  readonly #readers: readonly (ChatReader | undefined)[];
  #hasStarted = false;
  #completionTokens = 0;

  constructor(service: Service, job: ChatJob) {
    this.#service = service;
    this.#job = job;
    const isContinuous = service.countsUsage(job.request);
    this.#usageInChunks = !service.wantsUsage(job.request) ? "none" : isContinuous ? "counts" : "null";
    this.#withTokenIds = job.request.return_token_ids === true;
    this.#readers = Array.from({ length: job.params.n }, () => job.createReader());
  }

  ofDelta(delta: SequenceDelta, finish: "stop" | "length" | undefined): readonly ChatCompletionChunk[] {
    const chunks: ChatCompletionChunk[] = [];
    if (!this.#hasStarted) {
      this.#hasStarted = true;
      for (let index = 0; index < this.#job.params.n; index++) chunks.push(this.#first(index));
    }
    this.#completionTokens += delta.tokens.length;
    const logprobs =
      delta.logprobs === undefined || delta.logprobs.length === 0 ? null : this.#logprobs(delta.logprobs);
    const showsTokens = logprobs !== null || (this.#withTokenIds && delta.tokens.length > 0);
    const reader = this.#readers[delta.index];
    const parts: ChatDelta[] = [...readDelta(reader, delta, finish !== undefined)];
    // tokens whose text is held back (an incomplete character, a possible stop string or tag) make no chunk of their own
    if (parts.length === 0 && (finish !== undefined || showsTokens))
      parts.push(showsTokens ? { content: "" } : {});
    for (const [at, part] of parts.entries()) {
      const isFirst = at === 0;
      const isLast = at === parts.length - 1;
      const choice: ChatChunkChoice = {
        index: delta.index,
        delta: part,
        logprobs: isFirst ? logprobs : null,
        finish_reason: isLast && finish !== undefined ? finishReason(finish, reader) : null,
        ...(isLast && finish !== undefined ? { stop_reason: delta.stopReason ?? null } : {}),
        ...(this.#withTokenIds ? { token_ids: isFirst ? delta.tokens : [] } : {}),
      };
      chunks.push(this.#chunk([choice]));
    }
    return chunks;
  }

  ofUsage(usage: Usage): ChatCompletionChunk {
    return {
      ...this.#envelope([]),
      usage: wireUsage(usage, reasoningTokens(this.#readers)),
    };
  }

  ofNotes(octavo: OctavoNotes | undefined): ChatCompletionChunk {
    return { ...this.#envelope([]), ...(octavo === undefined ? {} : { octavo }) };
  }

  #first(index: number): ChatCompletionChunk {
    const choice: ChatChunkChoice = {
      index,
      delta: { role: this.#job.role, content: this.#job.echoText },
      logprobs: null,
      finish_reason: null,
    };
    const chunk = this.#chunk([choice]);
    if (index > 0) return chunk;
    const { request, promptTokens } = this.#job;
    return { ...chunk, ...promptParts(request, this.#service.model.tokenizer, promptTokens) };
  }

  #chunk(choices: readonly ChatChunkChoice[]): ChatCompletionChunk {
    if (this.#usageInChunks === "none") return this.#envelope(choices);
    const usage: UsageInfo | null =
      this.#usageInChunks === "null"
        ? null
        : usageInfo(this.#job.promptTokens.length, this.#completionTokens);
    return { ...this.#envelope(choices), usage };
  }

  #envelope(choices: readonly ChatChunkChoice[]): ChatCompletionChunk {
    const { id, created, model } = this.#job;
    return {
      id,
      object: "chat.completion.chunk",
      created,
      model,
      system_fingerprint: this.#service.fingerprint,
      choices,
    };
  }

  #logprobs(entries: NonNullable<SequenceDelta["logprobs"]>) {
    return chatLogprobs(
      entries,
      this.#service.tokenTexts,
      this.#job.request.return_tokens_as_token_ids === true,
    );
  }
}
