import type { GenerationEvent, SequenceDelta, TokenLogprob } from "@octavo/engine";
import type { ChatCompletionRequest } from "@octavo/protocol";
import { invalidField } from "@octavo/protocol/refusal";

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
 * Merges the increments of a stream until a sequence has `stream_interval` new tokens. A sequence's first increment and its last
 * one are sent at once, as in vLLM.
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

/** Merged increments of one sequence. */
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

  /** With the finish reason of the last one. */
  joinedWith(last: SequenceDelta): SequenceDelta {
    return { ...last, text: this.#text, tokens: this.#tokens, logprobs: this.#logprobs };
  }
}
