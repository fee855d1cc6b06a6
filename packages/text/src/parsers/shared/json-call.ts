import { isRecord } from "@octavo/protocol";
import type { EventSink } from "../output-events.js";
import { readArguments, scanValue } from "./call-arguments.js";
import { type Input, isSpace, takeSpace, type Waiting } from "./input.js";
import { nextPiece } from "./tags.js";

export interface JsonCallOptions {
  /** Tags that end the call's markup, wherever they stand outside strings. */
  readonly endTags: readonly string[];
  /** No tags surround it: an object is a call only if it has a name and arguments; other objects are content. */
  readonly isBare: boolean;
  /** The first key is the name, and its value the arguments. */
  readonly keyIsName?: boolean;
}

/** `raw`: the text, if it is not a call. `tag`: the end tag that was read, if any. */
type JsonCallResult =
  | { readonly isCall: true; readonly tag: string | undefined }
  | { readonly isCall: false; readonly raw: string; readonly tag: string | undefined };

/** If no name was found within so many characters, it is text. */
const maxHeldLength = 2 ** 20;
/** What the keys of a call mean; some families write longer ones. */
const callKeys: ReadonlyMap<string, "name" | "arguments" | "id" | "type"> = new Map([
  ["name", "name"],
  ["tool_name", "name"],
  ["arguments", "arguments"],
  ["parameters", "arguments"],
  ["id", "id"],
  ["tool_call_id", "id"],
  ["type", "type"],
]);
/** A regular expression for the beginning of an object that may be a call; JSON may escape its keys. */
export const callBeginning = `\\{\\s*"(?:(?:${[...callKeys.keys()].join("|")})"|[^"]*\\\\)`;

/**
 * Reads `{"name": ..., "arguments": {...}}`, with `parameters` for `arguments`, keys in any order and others ignored. The
 * arguments are streamed once the name is known.
 */
export function* readJsonCall(
  input: Input,
  sink: EventSink,
  options: JsonCallOptions,
): Waiting<JsonCallResult> {
  return yield* new JsonCallReader(input, sink, options).read();
}

class JsonCallReader {
  readonly #input: Input;
  readonly #sink: EventSink;
  readonly #options: JsonCallOptions;
  /** Everything read so far, while it may still not be a call. */
  #raw = "";
  #name: string | undefined;
  #id: string | undefined;
  #heldArguments: string | undefined;
  #hasArguments = false;
  #hasBegun = false;
  #problem: string | undefined;
  readonly #ignored: string[] = [];
  /** Once the call has begun: what was read since the last complete key. */
  #tail = "";

  constructor(input: Input, sink: EventSink, options: JsonCallOptions) {
    this.#input = input;
    this.#sink = sink;
    this.#options = options;
  }

  *read(): Waiting<JsonCallResult> {
    if ((yield* this.#next()) !== "{") return this.#result(undefined);
    for (let isFirst = true; ; isFirst = false) {
      const piece = yield* this.#nextSolid();
      if (piece === "}") return this.#result(undefined);
      if (piece.length !== 1) return this.#result(piece);
      if (piece === "," && !isFirst) continue;
      if (piece !== '"') return this.#giveUp();
      const key = yield* this.#string();
      if (key === undefined || (this.#options.isBare && isFirst && !callKeys.has(key))) return this.#giveUp();
      const colon = yield* this.#nextSolid();
      if (colon !== ":") return colon.length === 1 ? this.#giveUp() : this.#result(colon);
      const isName = isFirst && this.#options.keyIsName === true;
      if (isName) this.#name = key;
      const tag = yield* isName ? this.#arguments() : this.#value(key);
      this.#tail = "";
      if (tag !== undefined) return this.#result(tag);
      if (this.#raw.length > maxHeldLength) return { isCall: false, raw: this.#raw, tag: undefined };
    }
  }

  *#value(key: string): Waiting<string | undefined> {
    // an object between tags is a call, so that a name in use elsewhere can be read
    const meaning = key === "args" && !this.#options.isBare ? "arguments" : callKeys.get(key);
    if (meaning === "arguments" && !this.#hasArguments) return yield* this.#arguments();
    yield* this.#space();
    const { text, tag } = yield* this.#plainValue();
    const value = parseString(text);
    if (value !== undefined && value !== "" && meaning === "name" && this.#name === undefined)
      this.#name = value;
    else if (value !== undefined && value !== "" && meaning === "id" && !this.#hasBegun) this.#id ??= value;
    else if (meaning !== "type") this.#ignored.push(`${JSON.stringify(key)}: ${text}`);
    this.#beginIfKnown();
    return tag;
  }

  *#arguments(): Waiting<string | undefined> {
    this.#hasArguments = true;
    this.#heldArguments = "";
    this.#beginIfKnown();
    yield* this.#space();
    // an object that was written as JSON twice is known at its end
    const isString = (yield* this.#input.peek()) === '"';
    let text = "";
    const { problem, tag } = yield* readArguments(this.#input, this.#options.endTags, (unit) => {
      if (isString) text += unit;
      else this.#pushArguments(unit);
    });
    const inner = isString ? objectText(text) : undefined;
    if (isString) this.#pushArguments(inner ?? text);
    this.#problem = inner === undefined ? problem : undefined;
    return tag;
  }

  #pushArguments(text: string): void {
    if (this.#hasBegun) {
      this.#sink.arguments(text);
      return;
    }
    this.#heldArguments += text;
    this.#raw += text;
  }

  *#plainValue(): Waiting<{ readonly text: string; readonly tag: string | undefined }> {
    let text = "";
    const { tag } = yield* scanValue(this.#input, this.#options.endTags, (unit) => {
      this.#keep(unit);
      if (text.length < maxHeldLength) text += unit;
    });
    return { text, tag };
  }

  *#string(): Waiting<string | undefined> {
    let text = '"';
    let isEscaped = false;
    while (text.length < 1024) {
      const unit = yield* this.#input.next();
      if (unit === "") return undefined;
      this.#keep(unit);
      text += unit;
      if (unit === '"' && !isEscaped) return parseString(text);
      isEscaped = unit === "\\" && !isEscaped;
    }
    return undefined;
  }

  #beginIfKnown(): void {
    if (this.#hasBegun || this.#name === undefined) return;
    if (!this.#hasArguments) return;
    this.#hasBegun = true;
    this.#sink.beginCall(this.#name, this.#id);
    if (this.#heldArguments !== undefined) this.#sink.arguments(this.#heldArguments);
    this.#heldArguments = undefined;
    this.#raw = "";
  }

  /** The wrapper is not JSON: a call that has begun is reported, anything else is text. */
  #giveUp(): JsonCallResult {
    if (!this.#hasBegun) return { isCall: false, raw: this.#raw, tag: undefined };
    this.#problem ??= "the call around the arguments is not valid JSON";
    return this.#result(undefined);
  }

  /** `tag`: what ended the call before its closing brace; "" for the output's end. */
  #result(tag: string | undefined): JsonCallResult {
    const taken = tag === "" ? undefined : tag;
    if (!this.#hasBegun) {
      const isNamed = tag === undefined && !this.#options.isBare && this.#ignored.length === 0;
      if (!isNamed || this.#name === undefined) return { isCall: false, raw: this.#raw, tag: taken };
      this.#sink.beginCall(this.#name, this.#id);
      this.#sink.arguments("{}");
    }
    this.#sink.endCall(this.#problem);
    for (const text of this.#ignored) this.#sink.ignore(text);
    const rest = this.#tail.replace(/^[\s,}\]]+/, "");
    if (rest !== "") this.#sink.content(rest);
    return { isCall: true, tag: taken };
  }

  *#next(): Waiting<string> {
    const piece = yield* nextPiece(this.#input, this.#options.endTags);
    if (piece.length === 1) this.#keep(piece);
    return piece;
  }

  *#nextSolid(): Waiting<string> {
    for (;;) {
      const piece = yield* this.#next();
      if (!isSpace(piece)) return piece;
    }
  }

  *#space(): Waiting {
    this.#keep(yield* takeSpace(this.#input));
  }

  #keep(text: string): void {
    if (this.#hasBegun) this.#tail += text;
    else this.#raw += text;
  }
}

function parseString(text: string): string | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "string" ? value : undefined;
  } catch {
    return undefined;
  }
}

/** The JSON object that a JSON string holds. */
function objectText(text: string): string | undefined {
  const inner = parseString(text);
  if (inner === undefined) return undefined;
  try {
    return isRecord(JSON.parse(inner)) ? inner : undefined;
  } catch {
    return undefined;
  }
}
