import { literalSpec } from "./grammar-specs.js";
import type { CallLayout, OutputMachine, MachineContext } from "../machine.js";
import { takeSpace, type Waiting } from "./input.js";
import { type JsonCallOptions, readJsonCall } from "./json-call.js";
import { nextPiece, takeText, untilTag } from "./tags.js";

/** Calls in one array behind a tag, for constrained answers. `trigger`: the tag itself, where it does not appear in prose. */
export function jsonArrayLayout(tag: string, trigger?: string): CallLayout {
  return {
    open: `${tag}[`,
    close: "]",
    begin: (name) => [literalSpec(`{"name": ${JSON.stringify(name)}, "arguments": `)],
    end: "}",
    separator: ", ",
    ...(trigger === undefined ? {} : { trigger }),
  };
}

/** Calls in a JSON array without tags; only constrained answers are parsed this way. */
export const untaggedJsonCalls: OutputMachine = function* (context) {
  yield* readJsonCalls(context, "", [], []);
  yield* untilTag(context.input, [], (text) => context.sink.content(text));
};

/**
 * Calls as JSON objects, in an array or one behind the other, behind one of `startTags`; anything else there is content,
 * markup included. A call whose end tag is missing ends at the next start tag.
 */
export function taggedJsonCalls(
  startTags: readonly string[],
  endTags: readonly string[],
  options: Pick<JsonCallOptions, "keyIsName"> = {},
): OutputMachine {
  return function* (context) {
    const { input, sink } = context;
    const toContent = (text: string): void => sink.content(text);
    let tag = yield* untilTag(input, startTags, toContent);
    while (tag !== undefined) {
      tag = yield* readJsonCalls(context, tag, startTags, endTags, options);
      if (tag === undefined || !startTags.includes(tag)) tag = yield* untilTag(input, startTags, toContent);
    }
  };
}

/** Reads what follows a start tag; returns the tag that ended it, which may be the next start tag. */
export function* readJsonCalls(
  { input, sink }: MachineContext,
  opening: string,
  startTags: readonly string[],
  endTags: readonly string[],
  options: Pick<JsonCallOptions, "keyIsName"> = {},
): Waiting<string | undefined> {
  const tags = [...endTags, ...startTags];
  let markup = opening + (yield* takeSpace(input));
  const isArray = (yield* input.peek()) === "[";
  if (isArray) markup += (yield* input.next()) + (yield* takeSpace(input));
  for (;;) {
    const result = yield* readJsonCall(input, sink, { ...options, endTags: tags, isBare: false });
    if (!result.isCall) {
      sink.content(markup + result.raw);
      if (result.tag !== undefined && !startTags.includes(result.tag)) sink.content(result.tag);
      return result.tag;
    }
    markup = "";
    if (result.tag !== undefined) return result.tag;
    if (!(yield* takesSeparator(input, isArray))) break;
  }
  return yield* closeMarkup({ input, sink }, endTags, tags);
}

/** Whether another object follows. */
function* takesSeparator(input: MachineContext["input"], isArray: boolean): Waiting<boolean> {
  const space = yield* takeSpace(input);
  if (isArray && (yield* takeText(input, ","))) yield* takeSpace(input);
  else if (isArray || (yield* input.peek()) !== "{") {
    input.unread(space);
    return false;
  }
  return (yield* input.peek()) === "{";
}

/** Between a call and its end tag: stray brackets are skipped, anything else is content. */
export function* closeMarkup(
  { input, sink }: Pick<MachineContext, "input" | "sink">,
  endTags: readonly string[],
  tags: readonly string[],
): Waiting<string | undefined> {
  let space = yield* takeSpace(input);
  for (let unit = yield* input.peek(); unit !== "" && "]},;`".includes(unit); unit = yield* input.peek()) {
    yield* input.next();
    space = yield* takeSpace(input);
  }
  if (endTags.length === 0) {
    input.unread(space);
    return undefined;
  }
  const piece = yield* nextPiece(input, tags);
  if (piece.length > 1) return piece;
  input.unread(space + piece);
  return yield* untilTag(input, tags, (text) => sink.content(text));
}
