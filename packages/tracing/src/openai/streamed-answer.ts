import { asNumber, asObject, asObjects, asString, type JsonFields } from "@octavo/protocol";
import type {
  CapturedMessage,
  LlmResponseFacts,
  MessagePart,
  SpanOutcome,
  TokenUsage,
} from "../span/llm-span.js";
import {
  type ObservedAnswer,
  commonFacts,
  responsesFailure,
  hasItems,
  observedAnswerOf,
  readTokenUsage,
  someOf,
} from "./answer.js";
import type { CallKind } from "./call-kind.js";
import type { ContentBudget } from "./content-budget.js";

/** Puts an answer together from the chunks of its stream. */
export interface StreamedAnswer {
  /** Whether the chunk brought output: text, reasoning or a part of a tool call. */
  push(chunk: unknown): boolean;
  /** What has come so far. */
  answer(): ObservedAnswer;
}

export function streamedAnswer(kind: CallKind, budget: ContentBudget | undefined): StreamedAnswer {
  return kind === "responses" ? new ResponsesStream(budget) : new ChoicesStream(budget);
}

interface StreamedCall {
  id: string | undefined;
  name: string;
  arguments: string;
}

interface StreamedChoice {
  text: string;
  reasoning: string;
  finishReason: string | undefined;
  readonly calls: Map<number, StreamedCall>;
}

/** A server that numbers choices or calls without end gets no memory for them. */
const maxParts = 256;
const maxNameLength = 256;

/** Chunks of `chat/completions` and `completions`. */
class ChoicesStream implements StreamedAnswer {
  readonly #budget: ContentBudget | undefined;
  readonly #choices = new Map<number, StreamedChoice>();
  #facts: LlmResponseFacts = {};
  #usage: TokenUsage = {};

  constructor(budget: ContentBudget | undefined) {
    this.#budget = budget;
  }

  push(chunk: unknown): boolean {
    const fields = asObject(chunk);
    if (fields === undefined) return false;
    if (this.#facts.id === undefined) this.#facts = commonFacts(fields);
    if (asObject(fields["usage"]) !== undefined) this.#usage = readTokenUsage(fields["usage"]);
    let hasOutput = false;
    for (const choice of asObjects(fields["choices"])) {
      if (this.#pushChoice(choice)) hasOutput = true;
    }
    return hasOutput;
  }

  answer(): ObservedAnswer {
    const choices = [...this.#choices]
      .toSorted(([left], [right]) => left - right)
      .map(([, choice]) => choice);
    const finishReasons = someOf(choices.flatMap(({ finishReason }) => finishReason ?? []));
    const toolNames = someOf(choices.flatMap(({ calls }) => [...calls.values()].map(({ name }) => name)));
    return {
      response: {
        ...this.#facts,
        ...(finishReasons === undefined ? {} : { finishReasons }),
        ...(toolNames === undefined ? {} : { toolNames }),
      },
      usage: this.#usage,
      outputMessages: this.#budget === undefined ? [] : choices.map(streamedMessage),
      failure: undefined,
    };
  }

  #pushChoice(fields: JsonFields): boolean {
    const index = asNumber(fields["index"]) ?? 0;
    const choice = this.#choices.get(index) ?? {
      text: "",
      reasoning: "",
      finishReason: undefined,
      calls: new Map<number, StreamedCall>(),
    };
    if (this.#choices.size < maxParts) this.#choices.set(index, choice);
    choice.finishReason = asString(fields["finish_reason"]) ?? choice.finishReason;
    const delta = asObject(fields["delta"]);
    const text =
      asString(fields["text"]) ?? asString(delta?.["content"]) ?? asString(delta?.["refusal"]) ?? "";
    const reasoning = asString(delta?.["reasoning_content"]) ?? asString(delta?.["reasoning"]) ?? "";
    if (this.#budget !== undefined) {
      if (text !== "") choice.text += this.#budget.take(text);
      if (reasoning !== "") choice.reasoning += this.#budget.take(reasoning);
    }
    for (const call of asObjects(delta?.["tool_calls"])) this.#pushCall(choice, call);
    return text !== "" || reasoning !== "" || hasItems(delta, "tool_calls");
  }

  #pushCall({ calls }: StreamedChoice, fields: JsonFields): void {
    const index = asNumber(fields["index"]) ?? calls.size;
    const called = asObject(fields["function"]);
    const call = calls.get(index) ?? { id: undefined, name: "", arguments: "" };
    if (calls.size < maxParts) calls.set(index, call);
    call.id ??= asString(fields["id"]);
    if (call.name.length < maxNameLength) call.name += asString(called?.["name"]) ?? "";
    if (this.#budget !== undefined)
      call.arguments += this.#budget.take(asString(called?.["arguments"]) ?? "");
  }
}

function streamedMessage({ text, reasoning, calls, finishReason }: StreamedChoice): CapturedMessage {
  const parts: MessagePart[] = [];
  if (reasoning !== "") parts.push({ type: "reasoning", content: reasoning });
  if (text !== "") parts.push({ type: "text", content: text });
  for (const call of calls.values()) parts.push({ type: "tool_call", ...call });
  return { role: "assistant", parts, ...(finishReason === undefined ? {} : { finishReason }) };
}

/** Events of `responses`: deltas tell when output came, the last event holds the whole response. */
class ResponsesStream implements StreamedAnswer {
  readonly #budget: ContentBudget | undefined;
  #response: unknown;
  #failure: SpanOutcome | undefined;

  constructor(budget: ContentBudget | undefined) {
    this.#budget = budget;
  }

  push(event: unknown): boolean {
    const fields = asObject(event);
    const response = asObject(fields?.["response"]);
    if (response !== undefined) this.#response = response;
    if (fields?.["type"] === "error") this.#failure = responsesFailure(fields);
    return asString(fields?.["type"])?.endsWith(".delta") === true;
  }

  answer(): ObservedAnswer {
    const answer = observedAnswerOf("responses", this.#response, this.#budget);
    return this.#failure === undefined ? answer : { ...answer, failure: this.#failure };
  }
}
