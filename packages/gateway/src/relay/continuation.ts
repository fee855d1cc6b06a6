import { asObjects, asRecord, asString, type JsonFields } from "@octavo/protocol";
import type { StreamPart } from "../families/family.js";
import { callText, withCallText } from "./call-text.js";

/**
 * What a client has of a streamed answer: the token ids behind it, and how much text of each kind. When its target fails,
 * another one that serves the same model computes on from these tokens; it sends the answer from its beginning, and the text
 * that the client has is left out. With the same seed, weights and kernels the joined text is what one target would have sent.
 */
export class Continuation {
  /** Drawn once per exchange, so that every attempt samples alike. */
  readonly seed: number;
  readonly tokenIds: number[] = [];
  /** Characters that the client has, by kind of text; where a tool call's name was sent, its place too. */
  readonly #sent = new Map<string, number>();
  #skip: Map<string, number> | undefined;
  #tokensToSkip = 0;
  #head: { readonly id: unknown; readonly created: unknown } | undefined;

  constructor(seed: number) {
    this.seed = seed;
  }

  /** Whether anything has been sent that could be continued. */
  get hasBegun(): boolean {
    return this.#head !== undefined;
  }

  /** Another target takes over: what comes next begins at the first token again. */
  restart(): void {
    this.#skip = new Map(this.#sent);
    this.#tokensToSkip = this.tokenIds.length;
  }

  /** Notes what a chunk holds; returns it without what the client has, or undefined where nothing is left of it. */
  take(part: StreamPart): StreamPart | undefined {
    const { json } = part;
    this.#head ??= { id: json["id"], created: json["created"] };
    const [choice] = asObjects(json["choices"]);
    if (choice === undefined)
      return this.#skip === undefined ? part : { raw: undefined, json: { ...json, ...this.#head } };
    this.#takeTokens(choice);
    if (this.#skip === undefined) {
      for (const [kind, text] of textsOf(choice))
        this.#sent.set(kind, (this.#sent.get(kind) ?? 0) + text.length);
      return part;
    }
    return this.#withoutSent(json, choice);
  }

  #takeTokens(choice: JsonFields): void {
    const ids = choice["token_ids"];
    if (!Array.isArray(ids)) return;
    for (const id of ids) {
      if (this.#tokensToSkip > 0) this.#tokensToSkip -= 1;
      else this.tokenIds.push(Number(id));
    }
  }

  #withoutSent(json: JsonFields, choice: JsonFields): StreamPart | undefined {
    const skip = this.#skip ?? new Map<string, number>();
    let hasNew = choice["finish_reason"] !== undefined && choice["finish_reason"] !== null;
    const rest = (kind: string, text: string): string => {
      const left = skip.get(kind) ?? 0;
      const kept = text.slice(Math.min(left, text.length));
      skip.set(kind, left - (text.length - kept.length));
      this.#sent.set(kind, (this.#sent.get(kind) ?? 0) + kept.length);
      if (kept !== "") hasNew = true;
      return kept;
    };
    const delta = asRecord(choice["delta"]);
    const kept: Record<string, unknown> = { ...delta };
    delete kept["role"];
    for (const field of textFields) {
      const text = asString(delta[field]);
      if (text !== undefined) kept[field] = rest(field, text);
    }
    const calls = asObjects(delta["tool_calls"]).flatMap((call): JsonFields[] => {
      const { type, name, text = "" } = callText(call);
      const place = String(call["index"]);
      const isKnown = name === undefined || rest(`name ${place}`, "x") === "";
      const args = rest(`arguments ${place}`, text);
      if (!isKnown) return [withCallText(type, args, call)];
      return args === "" ? [] : [withCallText(type, args, { index: call["index"] })];
    });
    if (delta["tool_calls"] !== undefined) {
      if (calls.length > 0) kept["tool_calls"] = calls;
      else delete kept["tool_calls"];
    }
    const text = asString(choice["text"]);
    const changed: JsonFields = {
      ...choice,
      ...(text === undefined ? { delta: kept } : { text: rest("text", text) }),
    };
    return hasNew ? { raw: undefined, json: { ...json, ...this.#head, choices: [changed] } } : undefined;
  }
}

const textFields = ["content", "reasoning_content", "reasoning"] as const;

/** Kinds of text in a choice, each with its text; a tool call's name counts as one character, as it is sent in one piece. */
function* textsOf(choice: JsonFields): Iterable<readonly [string, string]> {
  const text = asString(choice["text"]);
  if (text !== undefined) yield ["text", text];
  const delta = asRecord(choice["delta"]);
  for (const field of textFields) {
    const value = asString(delta[field]);
    if (value !== undefined) yield [field, value];
  }
  for (const call of asObjects(delta["tool_calls"])) {
    const { name, text: args = "" } = callText(call);
    const place = String(call["index"]);
    if (name !== undefined) yield [`name ${place}`, "x"];
    yield [`arguments ${place}`, args];
  }
}
