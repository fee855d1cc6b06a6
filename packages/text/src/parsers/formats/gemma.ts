import { anyNumberOf, eitherOf, inSequence, literalSpec, regexSpec } from "../shared/grammar-specs.js";
import type { MachineContext, OutputMachine, ToolFormat } from "../machine.js";
import { type Input, takeSpace, type Waiting } from "../shared/input.js";
import { readCommaSeparated } from "../shared/comma-separated.js";
import { escapeText, isJsonScalar } from "../shared/json-text.js";
import { JsonScanner } from "../shared/json-scanner.js";
import { nextPiece, readUntilTag, takeText, untilTag } from "../shared/tags.js";

const maxNameLength = 512;
const maxDepth = 64;

interface GemmaTags {
  readonly start: string;
  readonly end: string;
  /** On both sides of a text. */
  readonly quote: string;
}

function machineOf(tags: GemmaTags): OutputMachine {
  return function* (context) {
    const toContent = (text: string): void => context.sink.content(text);
    while ((yield* untilTag(context.input, [tags.start], toContent)) !== undefined)
      yield* readCall(context, tags);
  };
}

function* readCall({ input, sink }: MachineContext, tags: GemmaTags): Waiting {
  const { start, end } = tags;
  const { text, tag } = yield* readUntilTag(input, [end, start], maxNameLength, "{");
  const name = /^\s*call:\s*(\S+)\s*$/.exec(text)?.[1];
  if (tag !== "{" || name === undefined) {
    sink.content(start + text + (tag === start ? "" : (tag ?? "")));
    if (tag === start) input.unread(start);
    return;
  }
  sink.beginCall(name);
  const problem = yield* new ValueReader(input, tags, (json) => sink.arguments(json)).object(0);
  if (problem !== undefined) {
    yield* untilTag(input, [end], (rest) => sink.arguments(rest));
    sink.endCall(`the arguments are not valid: ${problem}`);
    return;
  }
  sink.endCall();
  yield* takeSpace(input);
  yield* takeText(input, end);
}

/** Streams values as JSON; each method returns the problem, if there is one. */
class ValueReader {
  readonly #input: Input;
  readonly #tags: GemmaTags;
  readonly #onJson: (text: string) => void;

  constructor(input: Input, tags: GemmaTags, onJson: (text: string) => void) {
    this.#input = input;
    this.#tags = tags;
    this.#onJson = onJson;
  }

  /** After the opening brace. */
  object(depth: number): Waiting<string | undefined> {
    return this.#items({ close: "}", json: "{}" }, () => this.#member(depth + 1));
  }

  #items(
    brackets: { readonly close: string; readonly json: "{}" | "[]" },
    readItem: () => Waiting<string | undefined>,
  ): Waiting<string | undefined> {
    const readNext = (lead: string): Waiting<string | undefined> => {
      this.#onJson(lead);
      return readItem();
    };
    const unfollowed = (): string => `a value is not followed by , or ${brackets.close}`;
    return readCommaSeparated(this.#input, this.#onJson, brackets, readNext, unfollowed);
  }

  *#member(depth: number): Waiting<string | undefined> {
    return (yield* this.#key()) ?? (yield* this.#value(depth));
  }

  /** A key and its colon. */
  *#key(): Waiting<string | undefined> {
    const input = this.#input;
    const { quote, end } = this.#tags;
    const unfollowed = "a key is not followed by :";
    if ((yield* input.peek()) === '"') {
      const problem = yield* this.#quoted();
      if (problem !== undefined) return problem;
      yield* takeSpace(input);
      if (!(yield* takeText(input, ":"))) return unfollowed;
    } else {
      yield* takeText(input, quote);
      const { text, tag } = yield* readUntilTag(input, [quote, end], maxNameLength, ":");
      const isQuoted = tag === quote && (yield* takeText(input, ":"));
      if (tag !== ":" && !isQuoted) {
        this.#onJson(text);
        if (tag !== undefined) input.unread(tag);
        return unfollowed;
      }
      this.#onJson(`"${escapeText(text.trim())}"`);
    }
    this.#onJson(": ");
    return undefined;
  }

  /** A text in JSON's quotes, as it is; the call's end ends it too. */
  *#quoted(): Waiting<string | undefined> {
    const scanner = new JsonScanner();
    for (;;) {
      const piece = yield* nextPiece(this.#input, [this.#tags.end]);
      if (piece.length !== 1) {
        this.#input.unread(piece);
        return "a text is not closed";
      }
      this.#onJson(piece);
      if (scanner.push(piece) === "last") return scanner.problem;
    }
  }

  *#value(depth: number): Waiting<string | undefined> {
    const input = this.#input;
    const { quote, end } = this.#tags;
    if (depth > maxDepth) return `it is nested deeper than ${maxDepth} levels`;
    yield* takeSpace(input);
    if (yield* takeText(input, quote)) {
      this.#onJson('"');
      const closer = yield* untilTag(input, [quote, end], (text) => this.#onJson(escapeText(text)));
      if (closer !== quote) {
        if (closer !== undefined) input.unread(closer);
        return "a text is not closed";
      }
      this.#onJson('"');
      return undefined;
    }
    if ((yield* input.peek()) === '"') return yield* this.#quoted();
    if (yield* takeText(input, "{")) return yield* this.object(depth);
    if (yield* takeText(input, "["))
      return yield* this.#items({ close: "]", json: "[]" }, () => this.#value(depth + 1));
    return yield* this.#bare();
  }

  /** Numbers and true, false, null are JSON; any other bare word is taken for a text without its quotes. */
  *#bare(): Waiting<string | undefined> {
    const input = this.#input;
    let text = "";
    for (let unit = yield* input.peek(); unit !== "" && !",}]<".includes(unit); unit = yield* input.peek()) {
      if (text.length > 1024) break;
      text += yield* input.next();
    }
    const word = text.trim();
    if (word === "") return "a value is missing";
    this.#onJson(isJsonScalar(word) ? word : `"${escapeText(word)}"`);
    return undefined;
  }
}

function formatOf(name: string, tags: GemmaTags): ToolFormat {
  const { start, end, quote } = tags;
  const textEnds = [quote, end];
  const anyText = { kind: "schema_text", schema: { type: "string" }, without: textEnds } as const;
  const notText = {
    kind: "json_schema",
    schema: true,
    layout: { escapes: "needed and markup" },
    withoutStrings: true,
  } as const;
  const anyValue = eitherOf(notText, inSequence(literalSpec(quote), anyText, literalSpec(quote)));
  return {
    name,
    markers: [start, end, quote],
    machine: machineOf(tags),
    layout: {
      begin: (tool) => [literalSpec(`${start}call:${tool}{`)],
      end: `}${end}`,
      separator: "",
      trigger: start,
      notation: {
        before: (key) => `${key}:`,
        after: "",
        separator: ",",
        textEnds,
        textQuote: quote,
        any: anyNumberOf(inSequence(regexSpec("[A-Za-z_]\\w{0,63}:"), anyValue), ","),
      },
    },
  };
}

/**
 * `<start_function_call>call:name{key:<escape>text<escape>,key:1.5,...}<end_function_call>`; lists in brackets, objects in
 * braces. Texts in JSON's quotes are read too: models write them at times, and answers that are held to a schema in lists and
 * objects. Format: Google's "FunctionGemma formatting and best practices".
 */
export const functionGemmaFormat = formatOf("functiongemma", {
  start: "<start_function_call>",
  end: "<end_function_call>",
  quote: "<escape>",
});

/** As FunctionGemma's, between other tags. Format: the chat template of google/gemma-4. */
export const gemma4Format = formatOf("gemma4", {
  start: "<|tool_call>",
  end: "<tool_call|>",
  quote: '<|"|>',
});
