import type { Machine, MachineContext, ToolFormat } from "../machine.js";
import { takeSpace, type Input, type Waiting } from "../shared/input.js";
import { escapeText, escapeUnit } from "../shared/json-text.js";
import { readUntilTag, takeText, untilTag } from "../shared/tags.js";

const callStart = "<start_function_call>";
const callEnd = "<end_function_call>";
const quote = "<escape>";
const maxNameLength = 512;
const maxDepth = 64;

/**
 * `<start_function_call>call:name{key:<escape>text<escape>,key:1.5,...}<end_function_call>`; lists in brackets, objects in
 * braces. Format: Google's "FunctionGemma formatting and best practices".
 */
const machine: Machine = function* (context) {
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
function* readObject(
  input: Input,
  onJson: (text: string) => void,
  depth: number,
): Waiting<string | undefined> {
  onJson("{");
  for (let isFirst = true; ; isFirst = false) {
    yield* takeSpace(input);
    if (yield* takeText(input, "}")) break;
    yield* takeText(input, quote);
    const { text, tag } = yield* readUntilTag(input, [quote, callEnd], maxNameLength, ":");
    const isQuoted = tag === quote && (yield* takeText(input, ":"));
    if (tag !== ":" && !isQuoted) {
      onJson(text);
      if (tag !== undefined) input.unread(tag);
      return "a key is not followed by :";
    }
    onJson(`${isFirst ? "" : ", "}"${escapeText(text.trim())}": `);
    const problem = yield* readValue(input, onJson, depth + 1);
    if (problem !== undefined) return problem;
    yield* takeSpace(input);
    if (yield* takeText(input, "}")) break;
    if (!(yield* takeText(input, ","))) return "a value is not followed by , or }";
  }
  onJson("}");
  return undefined;
}

function* readList(input: Input, onJson: (text: string) => void, depth: number): Waiting<string | undefined> {
  onJson("[");
  for (let isFirst = true; ; isFirst = false) {
    yield* takeSpace(input);
    if (yield* takeText(input, "]")) break;
    if (!isFirst) onJson(", ");
    const problem = yield* readValue(input, onJson, depth + 1);
    if (problem !== undefined) return problem;
    yield* takeSpace(input);
    if (yield* takeText(input, "]")) break;
    if (!(yield* takeText(input, ","))) return "a value is not followed by , or ]";
  }
  onJson("]");
  return undefined;
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
  const isJson = /^(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)$/.test(word);
  onJson(isJson ? word : `"${Array.from(word, escapeUnit).join("")}"`);
  return undefined;
}

export const functionGemma: ToolFormat = {
  name: "functiongemma",
  markers: [callStart, callEnd, quote],
  machine,
};
