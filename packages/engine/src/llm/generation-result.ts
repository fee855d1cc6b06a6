import { OctavoError } from "@octavo/protocol/errors";
import type {
  FinishReason,
  GenerationEvent,
  SequenceDelta,
  ServingRecord,
  TokenLogprob,
  Usage,
} from "../api.js";

/** One finished sequence of a request. */
export interface GeneratedSequence {
  readonly index: number;
  readonly text: string;
  readonly tokens: readonly number[];
  /** Parallel to `tokens`, when asked for. */
  readonly logprobs: readonly TokenLogprob[] | undefined;
  readonly finishReason: FinishReason;
  /** The stop string or stop token id that ended it; undefined for EOS and length. */
  readonly stopReason: string | number | undefined;
}

export interface GenerationResult {
  readonly requestId: string;
  /** Of the first sequence. */
  readonly text: string;
  /** In order of their index; one unless `n` asked for more. */
  readonly sequences: readonly GeneratedSequence[];
  readonly promptTokens: Int32Array;
  /** When asked for; the first entry is undefined, as the first token has no prediction. */
  readonly promptLogprobs: readonly (TokenLogprob | undefined)[] | undefined;
  readonly usage: Usage;
  /** How the request was served: queue wait, first token, cache hits, preemptions. */
  readonly record: ServingRecord;
}

interface OpenSequence {
  readonly texts: string[];
  readonly tokens: number[];
  logprobs: TokenLogprob[] | undefined;
  finishReason: FinishReason | undefined;
  stopReason: string | number | undefined;
}

/** Collects a request's events into its result. */
export class ResultCollector {
  readonly #requestId: string;
  readonly #promptTokens: Int32Array;
  readonly #sequences = new Map<number, OpenSequence>();
  #promptLogprobs: readonly (TokenLogprob | undefined)[] | undefined;
  #done: Extract<GenerationEvent, { kind: "done" }> | undefined;

  constructor(requestId: string, promptTokens: Int32Array) {
    this.#requestId = requestId;
    this.#promptTokens = promptTokens;
  }

  add(event: GenerationEvent): void {
    if (event.kind === "prompt") this.#promptLogprobs = event.promptLogprobs;
    else if (event.kind === "delta") for (const delta of event.deltas) this.#addDelta(delta);
    else this.#done = event;
  }

  finish(): GenerationResult {
    if (this.#done === undefined) {
      throw new OctavoError("engine_failed", "The generation ended without saying how.");
    }
    const sequences = [...this.#sequences.entries()]
      .toSorted(([left], [right]) => left - right)
      .map(([index, { texts, finishReason, ...rest }]) => ({
        index,
        text: texts.join(""),
        finishReason: finishReason ?? "abort",
        ...rest,
      }));
    return {
      requestId: this.#requestId,
      text: sequences[0]?.text ?? "",
      sequences,
      promptTokens: this.#promptTokens,
      promptLogprobs: this.#promptLogprobs,
      usage: this.#done.usage,
      record: this.#done.record,
    };
  }

  #addDelta(delta: SequenceDelta): void {
    let sequence = this.#sequences.get(delta.index);
    if (sequence === undefined) {
      sequence = {
        texts: [],
        tokens: [],
        logprobs: undefined,
        finishReason: undefined,
        stopReason: undefined,
      };
      this.#sequences.set(delta.index, sequence);
    }
    sequence.texts.push(delta.text);
    for (const token of delta.tokens) sequence.tokens.push(token);
    if (delta.logprobs !== undefined) {
      const logprobs = (sequence.logprobs ??= []);
      for (const logprob of delta.logprobs) logprobs.push(logprob);
    }
    if (delta.finishReason !== undefined) {
      sequence.finishReason = delta.finishReason;
      sequence.stopReason = delta.stopReason;
    }
  }
}
