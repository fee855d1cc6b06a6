import type { FinishReason, TokenLogprob } from "../api.js";
import type { SamplingParams } from "../sampling/sampling-params.js";
import type { Detokenizer, Tokenizer } from "@octavo/text/tokenizer/tokenizer";
import type { PendingDelta } from "./event-channel.js";
import { type StopAutomaton, StopMatcher } from "./stop-matcher.js";

/** Why a sequence ended, and whether the token that ended it is left out of the text. */
export interface Ending {
  readonly finishReason: FinishReason;
  readonly stopReason: string | number | undefined;
  readonly hidesToken: boolean;
}

const none: readonly number[] = [];

/**
 * Turns one sequence's tokens into text and events. With stop strings, text is made token by token, since the next step
 * depends on it; otherwise when events are taken, while the next step runs.
 */
export class SequenceOutput {
  readonly #index: number;
  readonly #params: SamplingParams;
  readonly #detokenizer: Detokenizer;
  readonly #matcher: StopMatcher | undefined;
  #numTokens = 0;
  /** Tokens not taken yet; the first `#numTexted` of them are in `#text`. */
  #tokens: number[] | undefined;
  #numTexted = 0;
  #logprobs: TokenLogprob[] | undefined;
  #text = "";
  #ending: Ending | undefined;
  #isEnded = false;

  constructor(
    index: number,
    params: SamplingParams,
    tokenizer: Tokenizer,
    promptTokens: Int32Array,
    stops: StopAutomaton | undefined,
  ) {
    this.#index = index;
    this.#params = params;
    this.#detokenizer = tokenizer.createDetokenizer({
      skipSpecialTokens: params.skipSpecialTokens,
      ...(params.keptSpecialTokens === undefined ? {} : { keptSpecialTokens: params.keptSpecialTokens }),
      promptTokens,
    });
    this.#matcher = stops === undefined ? undefined : new StopMatcher(stops, params.includeStopStrInOutput);
  }

  /** Appends a token, with the ending it causes. A stop string in its text may end the sequence too: returns the ending. */
  accept(token: number, logprob: TokenLogprob | undefined, ending: Ending | undefined): Ending | undefined {
    // A literal has capacity for one: most deltas are one token.
    if (this.#tokens === undefined) this.#tokens = [token];
    else this.#tokens.push(token);
    if (logprob !== undefined) (this.#logprobs ??= []).push(logprob);
    this.#ending = ending;
    if (this.#matcher !== undefined) this.#makeText();
    return this.#ending;
  }

  /** Ends a sequence between tokens. */
  end(finishReason: FinishReason): void {
    this.#ending ??= { finishReason, stopReason: undefined, hidesToken: false };
  }

  /** The output since the last call; undefined if there is none. */
  take(): PendingDelta | undefined {
    if (this.#isEnded) return undefined;
    this.#makeText();
    const ending = this.#ending;
    if (this.#tokens === undefined && ending === undefined) return undefined;
    this.#isEnded = ending !== undefined;
    const delta: PendingDelta = {
      index: this.#index,
      text: this.#text,
      tokens: this.#tokens ?? [],
      logprobs:
        this.#params.logprobs === undefined && this.#params.logprobTokenIds === undefined
          ? undefined
          : (this.#logprobs ?? []),
      finishReason: ending?.finishReason,
      stopReason: ending?.stopReason,
    };
    this.#tokens = undefined;
    this.#numTexted = 0;
    this.#logprobs = undefined;
    this.#text = "";
    return delta;
  }

  #makeText(): void {
    const tokens = this.#tokens ?? none;
    while (this.#numTexted < tokens.length) {
      const token = tokens[this.#numTexted]!;
      this.#numTexted += 1;
      this.#numTokens += 1;
      if (this.#ending?.hidesToken && this.#numTexted === tokens.length) break;
      if (this.#addText(this.#detokenizer.push(token))) return;
    }
    if (this.#ending === undefined || this.#isEnded) return;
    if (this.#addText(this.#detokenizer.flush())) return;
    this.#text += this.#matcher?.flush() ?? "";
  }

  /** Adds text unless a stop string is in it; returns whether one was found. */
  #addText(piece: string): boolean {
    if (this.#matcher === undefined) {
      this.#text += piece;
      return false;
    }
    // As in vLLM, no stop string may end within the first `minTokens` tokens.
    this.#text += this.#matcher.push(piece, this.#numTokens > this.#params.minTokens);
    const { matched } = this.#matcher;
    if (matched !== undefined)
      this.#ending = { finishReason: "stop", stopReason: matched, hidesToken: false };
    return matched !== undefined;
  }
}
