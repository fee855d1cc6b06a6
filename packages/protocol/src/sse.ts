import { OctavoError } from "./errors.js";

/** What a stream of completions ends with. */
export const sseDone = "data: [DONE]\n\n";

/** One event carrying a JSON value, with a name or without. JSON text holds no line breaks, so one `data:` line is enough. */
export function encodeSseJson(value: unknown, event?: string): string {
  const data = `data: ${JSON.stringify(value)}\n\n`;
  return event === undefined ? data : `event: ${event}\n${data}`;
}

export interface SseEvent {
  /** The `event:` field; "message" when there was none. */
  readonly event: string;
  readonly data: string;
  /** The last `id:` seen, as the standard keeps it across events. */
  readonly lastEventId: string;
}

export interface SseDecoder {
  /** Events that became complete with this chunk. Chunks may end anywhere, inside a character too. */
  push(chunk: Uint8Array | string): readonly SseEvent[];
  /** True when the stream stopped inside an event; by the standard such an event is dropped. */
  readonly hasPartialEvent: boolean;
}

export interface SseDecoderOptions {
  /** Longest event accepted, in UTF-16 units; beyond it `push` throws `payload_too_large`. Default 16 Mi. */
  readonly maxEventLength?: number;
}

/**
 * An incremental decoder for server-sent events (WHATWG HTML, section 9.2.6): LF, CR and CRLF line ends,
 * a leading byte order mark, comments, several data lines per event. Time is linear in the input.
 */
export function createSseDecoder(options: SseDecoderOptions = {}): SseDecoder {
  return new IncrementalSseDecoder(options.maxEventLength ?? 16 * 1024 * 1024);
}

class IncrementalSseDecoder implements SseDecoder {
  readonly #utf8 = new TextDecoder("utf-8");
  readonly #maxEventLength: number;
  /** Pieces of a line whose end has not come yet; joined once, so that long lines stay linear. */
  #linePieces: string[] = [];
  #lineLength = 0;
  #skipLineFeed = false;
  #atStart = true;
  #data: string[] = [];
  #dataLength = 0;
  #event = "";
  #lastEventId = "";

  constructor(maxEventLength: number) {
    this.#maxEventLength = maxEventLength;
  }

  get hasPartialEvent(): boolean {
    return this.#lineLength > 0 || this.#data.length > 0;
  }

  push(chunk: Uint8Array | string): readonly SseEvent[] {
    let text = typeof chunk === "string" ? chunk : this.#utf8.decode(chunk, { stream: true });
    if (text === "") return [];
    if (this.#atStart) {
      // TextDecoder drops the mark from bytes; strings still carry it
      this.#atStart = false;
      if (text.startsWith("\ufeff")) text = text.slice(1);
    }
    const events: SseEvent[] = [];
    let start = 0;
    if (this.#skipLineFeed && text.startsWith("\n")) start = 1;
    this.#skipLineFeed = false;
    const lineEnd = /\r\n|\r|\n/g;
    lineEnd.lastIndex = start;
    for (let match = lineEnd.exec(text); match !== null; match = lineEnd.exec(text)) {
      this.#endLine(text.slice(start, match.index), events);
      start = lineEnd.lastIndex;
      if (match[0] === "\r" && start === text.length) this.#skipLineFeed = true;
    }
    if (start < text.length) this.#holdPiece(text.slice(start));
    return events;
  }

  #holdPiece(piece: string): void {
    this.#linePieces.push(piece);
    this.#lineLength += piece.length;
    this.#checkLength();
  }

  #checkLength(): void {
    if (this.#lineLength + this.#dataLength <= this.#maxEventLength) return;
    throw new OctavoError(
      "payload_too_large",
      `a server-sent event is longer than ${this.#maxEventLength} characters`,
    );
  }

  #endLine(rest: string, events: SseEvent[]): void {
    let line = rest;
    if (this.#linePieces.length > 0) {
      this.#linePieces.push(rest);
      line = this.#linePieces.join("");
      this.#linePieces = [];
      this.#lineLength = 0;
    }
    if (line === "") {
      this.#dispatch(events);
      return;
    }
    const colon = line.indexOf(":");
    if (colon === 0) return;
    const field = colon < 0 ? line : line.slice(0, colon);
    const valueStart = line.charAt(colon + 1) === " " ? colon + 2 : colon + 1;
    const value = colon < 0 ? "" : line.slice(valueStart);
    if (field === "data") {
      this.#data.push(value);
      this.#dataLength += value.length + 1;
      this.#checkLength();
    } else if (field === "event") {
      this.#event = value;
    } else if (field === "id" && !value.includes("\0")) {
      this.#lastEventId = value;
    }
  }

  #dispatch(events: SseEvent[]): void {
    if (this.#data.length > 0) {
      events.push({
        event: this.#event === "" ? "message" : this.#event,
        data: this.#data.join("\n"),
        lastEventId: this.#lastEventId,
      });
    }
    this.#data = [];
    this.#dataLength = 0;
    this.#event = "";
  }
}
