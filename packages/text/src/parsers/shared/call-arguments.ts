import type { EventSink } from "../output-events.js";
import type { Input, Waiting } from "./input.js";
import { takeSpace } from "./input.js";
import { JsonScanner } from "./json-scanner.js";
import { nextPiece } from "./tags.js";

interface ArgumentsResult {
  /** Why the text is not a JSON object. */
  readonly problem: string | undefined;
  /** The end tag that was taken; undefined when the value ended by itself or the output did. */
  readonly tag: string | undefined;
}

/**
 * Hands a call's arguments on as they are written, to the end of the JSON value or to an end tag. A tag inside a string
 * is text, unless the JSON is broken already: an unclosed quote must not swallow what follows the call.
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

/** Arguments straight into the sink, for formats whose name stands before them. */
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
