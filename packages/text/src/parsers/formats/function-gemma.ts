import { anyNumberOf, eitherOf, inSequence, literalSpec, regexSpec } from "../shared/grammar-specs.js";
import type { OutputMachine, MachineContext, ToolFormat } from "../machine.js";
import { takeSpace, type Input, type Waiting } from "../shared/input.js";
import { readCommaSeparated } from "../shared/comma-separated.js";
import { escapeText, isJsonScalar } from "../shared/json-text.js";
import { JsonScanner } from "../shared/json-scanner.js";
import { nextPiece, readUntilTag, takeText, untilTag } from "../shared/tags.js";

const callStart = "<start_function_call>";
const callEnd = "<end_function_call>";
const quote = "<escape>";
const maxNameLength = 512;
const maxDepth = 64;

/**
 * `<start_function_call>call:name{key:<escape>text<escape>,key:1.5,...}<end_function_call>`; lists in brackets, objects in
 * braces. Texts in JSON's quotes are read too: models write them at times, and answers that are held to a schema in lists and
 * objects. Format: Google's "FunctionGemma formatting and best practices".
 */
const machine: OutputMachine = function* (context) {
  const { input, sink } = context;
  const toContent = (text: string): void => sink.content(text);
  while ((yield* untilTag(input, [callStart], toContent)) !== undefined) yield* readCall(context);
};

function* readCall({ input, sink }: MachineContext): Waiting {
  const { text, tag } = yield* readUntilTag(input, [callEnd, callStart], maxNameLength, "{");
  const name = /^\s*call:\s*(\S+)\s*$/.exec(text)?.[1];
  if (tag !== "{" || name === undefined) {
    sink.content(callStart + text + (tag === callStart ? "" : (tag ?? "")));
    if (tag === callStart) input.unread(callStart);
    return;
  }
  sink.beginCall(name);
  const problem = yield* readObject(input, (json) => sink.arguments(json), 0);
  if (problem !== undefined) {
    yield* untilTag(input, [callEnd], (rest) => sink.arguments(rest));
    sink.endCall(`the arguments are not valid: ${problem}`);
    return;
  }
  sink.endCall();
  yield* takeSpace(input);
  yield* takeText(input, callEnd);
}

/** After the opening brace. */
function readObject(
  input: Input,
  onJson: (text: string) => void,
  depth: number,
): Waiting<string | undefined> {
  function* readMember(lead: string): Waiting<string | undefined> {
    onJson(lead);
    return (yield* readKey(input, onJson)) ?? (yield* readValue(input, onJson, depth + 1));
  }
  const brackets = { close: "}", json: "{}" } as const;
  return readCommaSeparated(input, onJson, brackets, readMember, () => "a value is not followed by , or }");
}

/** A key and its colon. */
function* readKey(input: Input, onJson: (text: string) => void): Waiting<string | undefined> {
  const unfollowed = "a key is not followed by :";
  if ((yield* input.peek()) === '"') {
    const problem = yield* readQuoted(input, onJson);
    if (problem !== undefined) return problem;
    yield* takeSpace(input);
    if (!(yield* takeText(input, ":"))) return unfollowed;
  } else {
    yield* takeText(input, quote);
    const { text, tag } = yield* readUntilTag(input, [quote, callEnd], maxNameLength, ":");
    const isQuoted = tag === quote && (yield* takeText(input, ":"));
    if (tag !== ":" && !isQuoted) {
      onJson(text);
      if (tag !== undefined) input.unread(tag);
      return unfollowed;
    }
    onJson(`"${escapeText(text.trim())}"`);
  }
  onJson(": ");
  return undefined;
}

/** A text in JSON's quotes, as it is; the call's end ends it too. */
function* readQuoted(input: Input, onJson: (text: string) => void): Waiting<string | undefined> {
  const scanner = new JsonScanner();
  for (;;) {
    const piece = yield* nextPiece(input, [callEnd]);
    if (piece.length !== 1) {
      input.unread(piece);
      return "a text is not closed";
    }
    onJson(piece);
    if (scanner.push(piece) === "last") return scanner.problem;
  }
}

/** After the opening bracket. */
function readList(input: Input, onJson: (text: string) => void, depth: number): Waiting<string | undefined> {
  const readItem = (lead: string): Waiting<string | undefined> => {
    onJson(lead);
    return readValue(input, onJson, depth + 1);
  };
  const brackets = { close: "]", json: "[]" } as const;
  return readCommaSeparated(input, onJson, brackets, readItem, () => "a value is not followed by , or ]");
}

function* readValue(
  input: Input,
  onJson: (text: string) => void,
  depth: number,
): Waiting<string | undefined> {
  if (depth > maxDepth) return `it is nested deeper than ${maxDepth} levels`;
  yield* takeSpace(input);
  if (yield* takeText(input, quote)) {
    onJson('"');
    const end = yield* untilTag(input, [quote, callEnd], (text) => onJson(escapeText(text)));
    if (end !== quote) {
      if (end !== undefined) input.unread(end);
      return "a text is not closed";
    }
    onJson('"');
    return undefined;
  }
  if ((yield* input.peek()) === '"') return yield* readQuoted(input, onJson);
  if (yield* takeText(input, "{")) return yield* readObject(input, onJson, depth);
  if (yield* takeText(input, "[")) return yield* readList(input, onJson, depth);
  return yield* readBareValue(input, onJson);
}

/** Numbers and true, false, null are JSON; any other bare word is taken for a text without its quotes. */
function* readBareValue(input: Input, onJson: (text: string) => void): Waiting<string | undefined> {
  let text = "";
  for (let unit = yield* input.peek(); unit !== "" && !",}]<".includes(unit); unit = yield* input.peek()) {
    if (text.length > 1024) break;
    text += yield* input.next();
  }
  const word = text.trim();
  if (word === "") return "a value is missing";
  onJson(isJsonScalar(word) ? word : `"${escapeText(word)}"`);
  return undefined;
}

const textEnds = [quote, callEnd];

export const functionGemmaFormat: ToolFormat = {
  name: "functiongemma",
  markers: [callStart, callEnd, quote],
  machine,
  layout: {
    begin: (name) => [literalSpec(`${callStart}call:${name}{`)],
    end: `}${callEnd}`,
    separator: "",
    trigger: callStart,
    notation: {
      before: (key) => `${key}:`,
      after: "",
      separator: ",",
      textEnds,
      textQuote: quote,
      any: anyNumberOf(
        inSequence(
          regexSpec("[A-Za-z_]\\w{0,63}:"),
          eitherOf(
            {
              kind: "json_schema",
              schema: true,
              layout: { escapes: "needed and markup" },
              withoutStrings: true,
            },
            inSequence(
              literalSpec(quote),
              { kind: "schema_text", schema: { type: "string" }, without: textEnds },
              literalSpec(quote),
            ),
          ),
        ),
        ",",
      ),
    },
  },
};
