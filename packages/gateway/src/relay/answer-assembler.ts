import { asNumber, asObjects, asRecord, asString, type JsonFields } from "@octavo/protocol";
import { type CallText, callText, withCallText } from "./call-text.js";

interface AssembledChoice {
  text: string;
  content: string;
  reasoning: string;
  refusal: string;
  role: string;
  finishReason: unknown;
  readonly calls: Map<number, { type: CallText["type"]; id: string; name: string; text: string }>;
}

/** Puts a streamed answer together into the one that would have come without `stream`. */
export class AnswerAssembler {
  readonly #choices = new Map<number, AssembledChoice>();
  #head: JsonFields = {};
  #usage: unknown;
  /** The whole answer from the last event of `/responses`. */
  #whole: JsonFields | undefined;

  add(json: JsonFields): void {
    if (!Array.isArray(json["choices"])) {
      const response = json["response"];
      if (typeof response === "object" && response !== null) this.#whole = asRecord(response);
      return;
    }
    if (this.#head["id"] === undefined) this.#head = json;
    if (json["usage"] !== undefined && json["usage"] !== null) this.#usage = json["usage"];
    for (const choice of asObjects(json["choices"])) this.#addChoice(choice);
  }

  finish(): JsonFields {
    if (this.#whole !== undefined) return this.#whole;
    const { id, created, model } = this.#head;
    const isChat = this.#head["object"] !== "text_completion";
    const choices = [...this.#choices].toSorted(([a], [b]) => a - b);
    return {
      id,
      object: isChat ? "chat.completion" : "text_completion",
      created,
      model,
      choices: choices.map(([index, choice]) => ({
        index,
        ...(isChat ? { message: messageOf(choice) } : { text: choice.text }),
        logprobs: null,
        finish_reason: choice.finishReason ?? null,
      })),
      ...(this.#usage === undefined ? {} : { usage: this.#usage }),
    };
  }

  #addChoice(choice: JsonFields): void {
    const index = asNumber(choice["index"]) ?? 0;
    let into = this.#choices.get(index);
    if (into === undefined) {
      into = {
        text: "",
        content: "",
        reasoning: "",
        refusal: "",
        role: "assistant",
        finishReason: undefined,
        calls: new Map(),
      };
      this.#choices.set(index, into);
    }
    const delta = asRecord(choice["delta"]);
    into.text += asString(choice["text"]) ?? "";
    into.content += asString(delta["content"]) ?? "";
    into.refusal += asString(delta["refusal"]) ?? "";
    into.reasoning += asString(delta["reasoning_content"]) ?? asString(delta["reasoning"]) ?? "";
    into.finishReason = choice["finish_reason"] ?? into.finishReason;
    for (const call of asObjects(delta["tool_calls"])) {
      const place = asNumber(call["index"]) ?? 0;
      const { type, name, text = "" } = callText(call);
      const before = into.calls.get(place) ?? { type, id: "", name: "", text: "" };
      into.calls.set(place, {
        type: before.type,
        id: asString(call["id"]) ?? before.id,
        name: name ?? before.name,
        text: before.text + text,
      });
    }
  }
}

function messageOf({ role, content, reasoning, refusal, calls }: AssembledChoice): JsonFields {
  return {
    role,
    content: content === "" && calls.size > 0 ? null : content,
    refusal: refusal === "" ? null : refusal,
    ...(reasoning === "" ? {} : { reasoning_content: reasoning }),
    ...(calls.size === 0
      ? {}
      : {
          tool_calls: [...calls.values()].map(({ id, type, name, text }) =>
            withCallText(type, text, { id, type, [type]: { name } }),
          ),
        }),
  };
}

/** An answer as the chunks of a stream that a client asked for, and the gateway has whole. */
export function answerChunks(json: JsonFields): readonly JsonFields[] {
  const { id, created, model, usage } = json;
  const isChat = json["object"] !== "text_completion";
  const head = { id, object: isChat ? "chat.completion.chunk" : "text_completion", created, model };
  const chunks = asObjects(json["choices"]).flatMap((choice): JsonFields[] => {
    const { index, message, text, finish_reason } = choice;
    if (!isChat) return [{ ...head, choices: [{ index, text, logprobs: null, finish_reason }] }];
    const { tool_calls, ...fields } = asRecord(message);
    const calls = asObjects(tool_calls).map((call, place) => ({ index: place, ...call }));
    const delta = { ...fields, ...(calls.length > 0 && { tool_calls: calls }) };
    return [
      { ...head, choices: [{ index, delta, logprobs: null, finish_reason: null }] },
      { ...head, choices: [{ index, delta: {}, logprobs: null, finish_reason }] },
    ];
  });
  return usage === undefined ? chunks : [...chunks, { ...head, choices: [], usage }];
}
