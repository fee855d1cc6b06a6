import { OctavoError } from "@octavo/protocol";
import type { LiveExchange } from "../exchange/live-exchange.js";
import type { MaybePromise } from "../exchange/maybe-promise.js";
import type { LocalAnswer, StageHooks, WholeAnswer } from "../exchange/stage.js";
import { answerChunks, AnswerAssembler } from "./answer-assembler.js";
import type { TargetAttempt } from "./attempt.js";
import type { Continuation } from "./continuation.js";
import type { AnswerSource, Obtained } from "./obtain-answer.js";
import { type AnswerWriting, sendWhole } from "./send-whole.js";
import { StreamWriter } from "./stream-writer.js";
import { TextFilters } from "./text-filters.js";

export interface RelayOptions {
  readonly hooks: readonly StageHooks[];
  /** Undefined for an answer of the gateway's own. */
  readonly source: AnswerSource | undefined;
  /** Undefined where no target could continue an answer. */
  readonly continuation: Continuation | undefined;
  readonly hidesUsage: boolean;
  readonly hidesTokenIds: boolean;
  readonly writing: AnswerWriting;
  /** An attempt's answer is the client's from now on. */
  readonly onWinner: (attempt: TargetAttempt) => void;
}

/** Brings a target's answer to the client: through the filters of the stages, judged where one asks for it, to its end. */
export class Relay {
  readonly #exchange: LiveExchange;
  readonly #options: RelayOptions;
  readonly #filters: TextFilters | undefined;
  readonly #judges: readonly NonNullable<StageHooks["judgeAnswer"]>[];
  readonly #collects: boolean;
  #assembler: AnswerAssembler | undefined;

  constructor(exchange: LiveExchange, options: RelayOptions) {
    this.#exchange = exchange;
    this.#options = options;
    const { hooks } = options;
    const filters = hooks.length === 0 ? [] : hooks.flatMap(({ filterText }) => filterText ?? []);
    this.#filters = filters.length === 0 ? undefined : new TextFilters(filters);
    this.#judges = hooks.length === 0 ? [] : hooks.flatMap(({ judgeAnswer }) => judgeAnswer ?? []);
    this.#collects = hooks.some(({ collectsAnswer }) => collectsAnswer === true);
    this.#assembler = this.#collects ? new AnswerAssembler() : undefined;
  }

  /** The answer where a stage collects it. Throws before the client got anything; later it is an error event. */
  run(first: Obtained): MaybePromise<WholeAnswer | undefined> {
    const { attempt, start } = first;
    const isPlain = this.#judges.length === 0 && this.#filters === undefined;
    if (!isPlain || start.kind !== "whole" || this.#exchange.facts.isStream) return this.#relay(first);
    this.#options.onWinner(attempt);
    return this.#send(attempt, start.json, start.status, start.text);
  }

  async #relay(first: Obtained): Promise<WholeAnswer | undefined> {
    let obtained = first;
    for (;;) {
      const { attempt, start } = obtained;
      if (start.kind === "stream" && this.#judges.length === 0) return this.#stream(attempt);
      const json = start.kind === "whole" ? start.json : await this.#wholeOf(attempt);
      const reason =
        this.#judges.length === 0
          ? undefined
          : await this.#rejection(this.#answerOf(attempt, json, start.status));
      const { source } = this.#options;
      if (reason !== undefined && source?.hasMore === true) {
        const next = await source.obtain("escalation").catch(() => undefined);
        if (next !== undefined) {
          obtained = next;
          continue;
        }
      }
      return this.#deliver(attempt, json, start.status, start.kind === "whole" ? start.text : undefined);
    }
  }

  /** An answer of the gateway's own, such as a cache's. */
  async local({ json, status }: LocalAnswer): Promise<void> {
    if (this.#exchange.facts.isStream) await this.#streamWhole(json);
    else sendWhole(this.#exchange, this.#options.writing, { status, json, text: undefined });
  }

  async #deliver(
    attempt: TargetAttempt,
    json: WholeAnswer["json"],
    status: number,
    text: string | undefined,
  ): Promise<WholeAnswer | undefined> {
    this.#options.onWinner(attempt);
    const filtered = this.#filters === undefined ? json : await this.#filters.whole(json);
    const isUnchanged = this.#filters === undefined || JSON.stringify(filtered) === JSON.stringify(json);
    if (this.#exchange.facts.isStream) await this.#streamWhole(filtered);
    else return this.#send(attempt, filtered, status, isUnchanged ? text : undefined);
    return this.#collects ? this.#answerOf(attempt, filtered, status) : undefined;
  }

  #send(
    attempt: TargetAttempt,
    json: WholeAnswer["json"],
    status: number,
    text: string | undefined,
  ): WholeAnswer | undefined {
    sendWhole(this.#exchange, this.#options.writing, { status, json, text });
    return this.#collects ? this.#answerOf(attempt, json, status) : undefined;
  }

  async #stream(first: TargetAttempt): Promise<WholeAnswer | undefined> {
    const { continuation, source, onWinner } = this.#options;
    const writer = this.#writer();
    let attempt = first;
    onWinner(attempt);
    for (;;) {
      try {
        for (;;) {
          const parts = await attempt.nextParts();
          if (parts === undefined) break;
          await this.#write(writer, parts);
        }
        writer.end();
        return this.#assembler && this.#answerOf(attempt, this.#assembler.finish(), 200);
      } catch (thrown) {
        const error = this.#exchange.abortReason ?? OctavoError.from(thrown);
        attempt.cancel();
        const next =
          error.code === "stream_interrupted" && continuation !== undefined && source !== undefined
            ? await this.#resume(continuation, source)
            : undefined;
        if (next === undefined) {
          if (!writer.hasBegun) throw error;
          this.#exchange.ledger.errorCode = error.code;
          writer.fail(error);
          return undefined;
        }
        attempt = next;
        onWinner(attempt);
      }
    }
  }

  async #resume(continuation: Continuation, source: AnswerSource): Promise<TargetAttempt | undefined> {
    if (!source.hasMore) return undefined;
    continuation.restart();
    const obtained = await source.obtain("resume").catch(() => undefined);
    return obtained?.start.kind === "stream" ? obtained.attempt : undefined;
  }

  async #write(
    writer: StreamWriter,
    parts: readonly Parameters<StreamWriter["write"]>[0][number][],
  ): Promise<void> {
    const { continuation } = this.#options;
    let leaving = parts;
    if (continuation !== undefined) leaving = leaving.flatMap((part) => continuation.take(part) ?? []);
    if (this.#filters !== undefined) {
      const filters = this.#filters;
      const filtered = [];
      for (const part of leaving)
        for (const json of await filters.events(part.json)) filtered.push({ raw: undefined, json });
      leaving = filtered;
    }
    if (this.#assembler !== undefined) for (const { json } of leaving) this.#assembler.add(json);
    await writer.write(leaving);
  }

  async #streamWhole(json: WholeAnswer["json"]): Promise<void> {
    const writer = this.#writer();
    await writer.write(answerChunks(json).map((chunk) => ({ raw: undefined, json: chunk })));
    writer.end();
  }

  async #wholeOf(attempt: TargetAttempt): Promise<WholeAnswer["json"]> {
    const assembler = new AnswerAssembler();
    for (;;) {
      const parts = await attempt.nextParts();
      if (parts === undefined) return assembler.finish();
      for (const { json } of parts) assembler.add(json);
    }
  }

  /** Why a stage does not accept the answer; undefined where all do. */
  async #rejection(answer: WholeAnswer): Promise<string | undefined> {
    for (const judge of this.#judges) {
      const reason = await judge(answer);
      if (reason !== undefined) return reason;
    }
    return undefined;
  }

  #answerOf({ record, model }: TargetAttempt, json: WholeAnswer["json"], status: number): WholeAnswer {
    return {
      status,
      json,
      target: record.target,
      model,
      usage: record.usage,
      costUsd: record.costUsd,
      firstByteMs: (record.firstByteMs ?? record.startedMs) - record.startedMs,
      durationMs: (record.endedMs ?? this.#exchange.elapsedMs()) - record.startedMs,
    };
  }

  #writer(): StreamWriter {
    const { hidesUsage, hidesTokenIds, writing } = this.#options;
    const { operation } = this.#exchange;
    return new StreamWriter(this.#exchange, {
      prefixes: writing.prefixes,
      inLastEvent: writing.inLastEvent,
      stallMs: writing.stallMs,
      hidesUsage,
      hidesTokenIds,
      endsWithDone: operation === "chat" || operation === "completions",
    });
  }
}
