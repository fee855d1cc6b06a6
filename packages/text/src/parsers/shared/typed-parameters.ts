import type { EventSink } from "../output-events.js";
import type { Input, Waiting } from "./input.js";
import { escapeText, escapeUnit } from "./json-text.js";
import { nextPiece } from "./tags.js";

/** Longest value that is buffered to determine its type; a longer one is text. */
const maxHeldLength = 2 ** 20;

/** Writes arguments to the sink as one JSON object, for formats that do not write JSON. */
export class ArgumentsWriter {
  readonly #sink: EventSink;
  #isEmpty = true;

  constructor(sink: EventSink) {
    this.#sink = sink;
  }

  key(name: string): void {
    this.#sink.arguments(`${this.#isEmpty ? "{" : ", "}"${escapeText(name)}": `);
    this.#isEmpty = false;
  }

  raw(json: string): void {
    this.#sink.arguments(json);
  }

  end(): void {
    this.#sink.arguments(this.#isEmpty ? "{}" : "}");
  }
}

interface TypedValueOptions {
  readonly kind: "text" | "json" | "either";
  /** Tags that end the value; which one did is returned. */
  readonly endTags: readonly string[];
  /** One line break after the start tag and one before the end tag belong to the markup. */
  readonly trimsLineBreaks: boolean;
}

/** Reads a value that is written without its type. Text is streamed; other values are passed on when complete. */
export function* readTypedValue(
  input: Input,
  writer: ArgumentsWriter,
  options: TypedValueOptions,
): Waiting<string | undefined> {
  const { kind, endTags, trimsLineBreaks } = options;
  let isHeld = kind !== "text";
  let held = "";
  let isFirst = true;
  let lineBreak = "";
  const write = (unit: string): void => {
    if (!isHeld) writer.raw(escapeUnit(unit));
    else held += unit;
    if (!isHeld || held.length <= maxHeldLength) return;
    isHeld = false;
    writer.raw(`"${escapeText(held)}`);
    held = "";
  };
  if (!isHeld) writer.raw('"');
  for (;;) {
    const piece = yield* nextPiece(input, endTags);
    if (piece === "" || piece.length > 1) {
      // the output ended inside the value: its last line break may have been text
      if (piece === "" || !trimsLineBreaks) for (const unit of lineBreak) write(unit);
      writer.raw(isHeld ? typedJson(held, kind === "json") : '"');
      return piece === "" ? undefined : piece;
    }
    if (trimsLineBreaks && piece === "\n") {
      if (!isFirst) {
        for (const unit of lineBreak) write(unit);
        lineBreak = "\n";
      }
    } else {
      for (const unit of lineBreak) write(unit);
      lineBreak = "";
      write(piece);
    }
    isFirst = false;
  }
}

const pythonWords: Readonly<Record<string, string>> = { True: "true", False: "false", None: "null" };

/** JSON where the text is JSON, Python's words included; otherwise the text as a string. */
export function typedJson(text: string, prefersJson: boolean): string {
  const trimmed = text.trim();
  const word = Object.hasOwn(pythonWords, trimmed) ? pythonWords[trimmed] : undefined;
  if (word !== undefined && prefersJson) return word;
  try {
    const value: unknown = JSON.parse(trimmed);
    if (prefersJson || typeof value !== "string") return trimmed;
  } catch {
    // not JSON: a string
  }
  return JSON.stringify(text);
}
