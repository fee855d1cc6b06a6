import { createSseDecoder, OctavoError, type SseDecoder } from "@octavo/protocol";

export interface SseMessage {
  /** As it came, with the blank line that ends it. */
  readonly raw: string;
  readonly data: string;
}

const lineFeed = 10;
const carriageReturn = 13;

/**
 * Cuts a stream into events and keeps each one's text as it was sent. Streams whose lines end in a line feed alone, as those
 * of all servers here do, are cut where two of them meet; a stream with a carriage return is decoded by the standard's rules
 * and rewritten.
 */
export class SseSplitter {
  readonly #maxEventBytes: number;
  #rest: Buffer | undefined;
  #decoder: SseDecoder | undefined;

  constructor(maxEventBytes: number) {
    this.#maxEventBytes = maxEventBytes;
  }

  /** Whether the stream stands inside an event. */
  get hasPartialEvent(): boolean {
    return this.#decoder?.hasPartialEvent ?? this.#rest !== undefined;
  }

  /** Throws `target_answer_invalid` for an event that is longer than the limit. */
  push(chunk: Buffer): readonly SseMessage[] {
    if (this.#decoder === undefined && chunk.includes(carriageReturn)) {
      this.#decoder = createSseDecoder({ maxEventLength: this.#maxEventBytes });
      const before = this.#rest;
      this.#rest = undefined;
      return before === undefined ? this.#decode(chunk) : [...this.#decode(before), ...this.#decode(chunk)];
    }
    if (this.#decoder !== undefined) return this.#decode(chunk);
    const bytes = this.#rest === undefined ? chunk : Buffer.concat([this.#rest, chunk]);
    const messages: SseMessage[] = [];
    let start = 0;
    let from = Math.max(0, (this.#rest?.length ?? 0) - 1);
    for (;;) {
      const end = bytes.indexOf(lineFeed, from);
      if (end < 0) break;
      from = end + 1;
      if (bytes[from] !== lineFeed) continue;
      from += 1;
      const raw = bytes.toString("utf8", start, from);
      start = from;
      const data = dataOf(raw);
      if (data !== undefined) messages.push({ raw, data });
    }
    this.#rest = start === bytes.length ? undefined : bytes.subarray(start);
    if ((this.#rest?.length ?? 0) > this.#maxEventBytes) throw tooLong(this.#maxEventBytes);
    return messages;
  }

  #decode(chunk: Buffer): readonly SseMessage[] {
    try {
      return (this.#decoder?.push(chunk) ?? []).map(({ event, data }) => ({
        raw: `${event === "message" ? "" : `event: ${event}\n`}data: ${data.replaceAll("\n", "\ndata: ")}\n\n`,
        data,
      }));
    } catch (cause) {
      if (cause instanceof OctavoError && cause.code === "payload_too_large")
        throw tooLong(this.#maxEventBytes, cause);
      throw cause;
    }
  }
}

/** The joined `data:` lines of one event; undefined where it has none, as comments that keep a connection open. */
function dataOf(event: string): string | undefined {
  if (event.startsWith("data: ") && event.indexOf("\n") === event.length - 2) return event.slice(6, -2);
  let data: string | undefined;
  for (const line of event.split("\n")) {
    if (!line.startsWith("data:") && line !== "data") continue;
    const text = line.slice(5).replace(/^ /, "");
    data = data === undefined ? text : `${data}\n${text}`;
  }
  return data;
}

function tooLong(maxBytes: number, cause?: unknown): OctavoError {
  return new OctavoError("target_answer_invalid", `the target sent an event of more than ${maxBytes} bytes`, {
    cause,
  });
}
