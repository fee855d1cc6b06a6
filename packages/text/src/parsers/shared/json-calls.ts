import { literalSpec } from "./grammar-specs.js";
import type { CallLayout, OutputMachine, MachineContext } from "../machine.js";
import { takeSpace, type Waiting } from "./input.js";
import { readJsonCall } from "./json-call.js";
import { untilTag } from "./tags.js";

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
 * Calls as JSON objects, alone or in an array, behind one of `startTags`; anything else there is content, markup included. A call whose end tag is missing ends at the next start tag.
 */
export function taggedJsonCalls(startTags: readonly string[], endTags: readonly string[]): OutputMachine {
  return function* (context) {
    const { input, sink } = context;
    const toContent = (text: string): void => sink.content(text);
    let tag = yield* untilTag(input, startTags, toContent);
    while (tag !== undefined) {
      tag = yield* readJsonCalls(context, tag, startTags, endTags);
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
): Waiting<string | undefined> {
  const tags = [...endTags, ...startTags];
  let markup = opening + (yield* takeSpace(input));
  const isArray = (yield* input.peek()) === "[";
  if (isArray) markup += yield* input.next();
  for (;;) {
    const result = yield* readJsonCall(input, sink, { endTags: tags, isBare: false });
    if (!result.isCall) {
      sink.content(markup + result.raw);
      if (result.tag !== undefined && !startTags.includes(result.tag)) sink.content(result.tag);
      return result.tag;
    }
    markup = "";
    if (result.tag !== undefined) return result.tag;
    if (!isArray || !(yield* takesSeparator(input))) break;
  }
  return yield* closeMarkup({ input, sink }, endTags, tags);
}

function* takesSeparator(input: MachineContext["input"]): Waiting<boolean> {
  yield* takeSpace(input);
  if ((yield* input.peek()) !== ",") return false;
  yield* input.next();
  yield* takeSpace(input);
  return (yield* input.peek()) === "{";
}

/** Between a call and its end tag: stray brackets are skipped, anything else is content. */
export function* closeMarkup(
  { input, sink }: Pick<MachineContext, "input" | "sink">,
  endTags: readonly string[],
  tags: readonly string[],
): Waiting<string | undefined> {
  yield* takeSpace(input);
  for (let unit = yield* input.peek(); unit !== "" && "]},;`".includes(unit); unit = yield* input.peek()) {
    yield* input.next();
    yield* takeSpace(input);
  }
  if (endTags.length === 0) return undefined;
  return yield* untilTag(input, tags, (text) => sink.content(text));
}
