import type { EventSink } from "../output-events.js";
import type { Input, Waiting } from "./input.js";
import { takeSpace } from "./input.js";
import { JsonScanner } from "./json-scanner.js";
import { nextPiece } from "./tags.js";

interface ArgumentsResult {
  /** Why the text is not a JSON object. */
  readonly problem: string | undefined;
  /** The end tag that was read; undefined when the JSON value or the output ended first. */
  readonly tag: string | undefined;
}

/**
 * Streams a call's arguments up to the end of the JSON value or to an end tag. A tag inside a string
 * is text, unless the JSON is already invalid: an unclosed quote must not swallow the text after the call.
 */
export function* readArguments(
  input: Input,
  endTags: readonly string[],
  onText: (text: string) => void,
): Waiting<ArgumentsResult> {
  yield* takeSpace(input);
  const scanner = new JsonScanner();
  let tag: string | undefined;
  for (;;) {
    const isText = scanner.isInString && scanner.problem === undefined;
    const piece = isText ? yield* input.next() : yield* nextPiece(input, endTags);
    if (piece === "" || piece.length > 1) {
      tag = piece === "" ? undefined : piece;
      break;
    }
    const step = scanner.push(piece);
    if (step === "after") {
      input.unread(piece);
      break;
    }
    onText(piece);
    if (step === "last") break;
  }
  scanner.end();
  return { problem: problemOf(scanner), tag };
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
