import type { EventSink } from "../output-events.js";
import { type Input, takeSpace, type Waiting } from "./input.js";
import { JsonScanner } from "./json-scanner.js";
import { nextPiece } from "./tags.js";

interface ArgumentsResult {
  /** Why the text is not a JSON object. */
  readonly problem: string | undefined;
  /** The end tag that was read; undefined when the JSON value or the output ended first. */
  readonly tag: string | undefined;
}

/**
 * Streams one JSON value up to its end or to an end tag. A tag inside a string is text, unless the JSON is already invalid:
 * an unclosed quote must not swallow the text after the call. `tag` is "" at the end of the output.
 */
export function* scanValue(
  input: Input,
  endTags: readonly string[],
  onText: (text: string) => void,
): Waiting<{ readonly scanner: JsonScanner; readonly tag: string | undefined }> {
  const scanner = new JsonScanner();
  for (;;) {
    const isText = scanner.isInString && scanner.problem === undefined;
    const piece = isText ? yield* input.next() : yield* nextPiece(input, endTags);
    if (piece.length !== 1) return { scanner, tag: piece };
    const step = scanner.push(piece);
    if (step === "after") input.unread(piece);
    else onText(piece);
    if (step !== "inside") return { scanner, tag: undefined };
  }
}

/** Streams a call's arguments. */
export function* readArguments(
  input: Input,
  endTags: readonly string[],
  onText: (text: string) => void,
): Waiting<ArgumentsResult> {
  yield* takeSpace(input);
  const { scanner, tag } = yield* scanValue(input, endTags, onText);
  scanner.end();
  return { problem: problemOf(scanner), tag: tag === "" ? undefined : tag };
}

function problemOf(scanner: JsonScanner): string | undefined {
  if (scanner.problem !== undefined) return `the arguments are not valid JSON: ${scanner.problem}`;
  return scanner.first === "{" ? undefined : "the arguments are not a JSON object";
}

/** Streams arguments into the sink, for formats that write the name first. */
export function* readCallArguments(
  input: Input,
  sink: EventSink,
  endTags: readonly string[],
): Waiting<string | undefined> {
  let isEmpty = true;
  const { problem, tag } = yield* readArguments(input, endTags, (text) => {
    isEmpty = false;
    sink.arguments(text);
  });
  if (isEmpty) sink.arguments("{}");
  sink.endCall(isEmpty ? undefined : problem);
  return tag;
}
