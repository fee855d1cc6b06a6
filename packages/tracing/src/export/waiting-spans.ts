import { jsonText } from "../conventions/attribute-list.js";
import type { CapturedMessage, LlmSpan, MessagePart } from "../span/llm-span.js";

export interface WaitingLimits {
  readonly maxSpans: number;
  /** Limit on content, over all spans. */
  readonly maxCharacters: number;
}

interface Entry {
  readonly span: LlmSpan;
  readonly characters: number;
}

/** What a sink has taken and not yet delivered or dropped: bounded in number and, since content may be long, in characters. */
export class WaitingSpans {
  readonly #limits: WaitingLimits;
  #waiting: Entry[] = [];
  #underWay: readonly Entry[] = [];
  #characters = 0;

  constructor(limits: WaitingLimits) {
    this.#limits = limits;
  }

  /** Those that wait, and those on their way. */
  get size(): number {
    return this.#waiting.length + this.#underWay.length;
  }

  get numWaiting(): number {
    return this.#waiting.length;
  }

  /** False where there is no room. One span is taken whatever its size. */
  add(span: LlmSpan): boolean {
    const characters = contentCharacters(span);
    const { maxSpans, maxCharacters } = this.#limits;
    if (this.size >= maxSpans || (this.size > 0 && this.#characters + characters > maxCharacters))
      return false;
    this.#waiting.push({ span, characters });
    this.#characters += characters;
    return true;
  }

  /** The first `count`, which are under way until they are settled. */
  take(count: number): readonly LlmSpan[] {
    this.settle();
    this.#underWay = this.#waiting.splice(0, count);
    return this.#underWay.map(({ span }) => span);
  }

  /** Those under way have been delivered or dropped. */
  settle(): void {
    for (const { characters } of this.#underWay) this.#characters -= characters;
    this.#underWay = [];
  }

  /** Drops those that wait; returns how many they were. */
  clear(): number {
    const dropped = this.#waiting.length;
    for (const { characters } of this.#waiting) this.#characters -= characters;
    this.#waiting = [];
    return dropped;
  }
}

/** Characters of what was captured of a call. */
export function contentCharacters({ content }: LlmSpan): number {
  if (content === undefined) return 0;
  const { systemInstructions, inputMessages, outputMessages, toolDefinitions, prompts } = content;
  const ofParts = (parts: readonly MessagePart[]): number =>
    parts.reduce((sum, part) => sum + partCharacters(part), 0);
  const ofMessages = (messages: readonly CapturedMessage[]): number =>
    messages.reduce((sum, { parts }) => sum + ofParts(parts), 0);
  return (
    ofParts(systemInstructions) +
    ofMessages(inputMessages) +
    ofMessages(outputMessages) +
    toolDefinitions.reduce((sum: number, tool) => sum + jsonText(tool).length, 0) +
    prompts.reduce((sum, prompt) => sum + prompt.length, 0)
  );
}

function partCharacters(part: MessagePart): number {
  switch (part.type) {
    case "text":
    case "reasoning":
      return part.content.length;
    case "tool_call":
      return part.arguments.length;
    case "tool_call_response":
      return part.response.length;
    case "media":
      return 0;
  }
}
