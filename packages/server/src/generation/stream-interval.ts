import type { GenerationEvent, SequenceDelta, TokenLogprob } from "@octavo/engine";
import type { ChatCompletionRequest } from "@octavo/protocol";
import { invalidField } from "./refusal.js";

/** Throws `invalid_request` for fields that only a stream has, or that a stream cannot have. */
export function checkStreamFields(
  request: Pick<ChatCompletionRequest, "stream" | "stream_options" | "prompt_logprobs">,
): void {
  if (request.stream !== true && request.stream_options)
    throw invalidField("stream_options", "only a streamed answer has them; set stream to true");
  if (request.stream === true && typeof request.prompt_logprobs === "number")
    throw invalidField("prompt_logprobs", "not available in a stream");
}

/**
 * Joins a streamed answer's increments until a sequence has so many tokens as `stream_interval` says. The first ones of a
 * sequence go out at once, as in vLLM, and so does what ends it.
 */
export function inIntervals(
  events: AsyncIterable<GenerationEvent>,
  { stream, stream_interval: interval }: Pick<ChatCompletionRequest, "stream" | "stream_interval">,
): AsyncIterable<GenerationEvent> {
  return stream === true && interval && interval > 1 ? joined(events, interval) : events;
}

async function* joined(
  events: AsyncIterable<GenerationEvent>,
  interval: number,
): AsyncGenerator<GenerationEvent> {
  const begun = new Set<number>();
  const held = new Map<number, HeldDelta>();
  for await (const event of events) {
    if (event.kind !== "delta") {
      yield event;
      continue;
    }
    const deltas: SequenceDelta[] = [];
    for (const delta of event.deltas) {
      const { index } = delta;
      const whole = held.get(index) ?? new HeldDelta();
      whole.add(delta);
      const isDue = !begun.has(index) || delta.finishReason !== undefined || whole.numTokens >= interval;
      begun.add(index);
      if (isDue) {
        held.delete(index);
        deltas.push(whole.joinedWith(delta));
      } else held.set(index, whole);
    }
    if (deltas.length > 0) yield { kind: "delta", deltas };
  }
}

/** Increments of one sequence, put together. */
class HeldDelta {
  #text = "";
  readonly #tokens: number[] = [];
  #logprobs: TokenLogprob[] | undefined;

  get numTokens(): number {
    return this.#tokens.length;
  }

  add({ text, tokens, logprobs }: SequenceDelta): void {
    this.#text += text;
    for (const token of tokens) this.#tokens.push(token);
    if (logprobs === undefined) return;
    this.#logprobs ??= [];
    for (const logprob of logprobs) this.#logprobs.push(logprob);
  }

  /** With the end that the last one may bring. */
  joinedWith(last: SequenceDelta): SequenceDelta {
    return { ...last, text: this.#text, tokens: this.#tokens, logprobs: this.#logprobs };
  }
}
