import { crc32 } from "node:zlib";
import { OctavoError } from "@octavo/protocol";

/** A message of `application/vnd.amazon.eventstream`. */
export interface AwsMessage {
  readonly headers: Readonly<Record<string, string>>;
  readonly payload: Buffer;
}

/** Total length, headers' length, their checksum; at the end, the checksum of all that came before. */
const preludeBytes = 12;
const checksumBytes = 4;
/** Types of header values by their number, as bytes of a value; undefined where two bytes of length come first. */
const valueBytes: readonly (number | undefined)[] = [0, 0, 1, 2, 4, 8, undefined, undefined, 8, 16];
const stringType = 7;

/** Cuts bytes into messages and checks both of their checksums. Throws `target_answer_invalid`. */
export class AwsEventStream {
  readonly #maxBytes: number;
  #rest: Buffer = Buffer.alloc(0);

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get hasPartialMessage(): boolean {
    return this.#rest.length > 0;
  }

  push(chunk: Buffer): readonly AwsMessage[] {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    const messages: AwsMessage[] = [];
    let start = 0;
    while (bytes.length - start >= preludeBytes) {
      const length = bytes.readUInt32BE(start);
      const headerBytes = bytes.readUInt32BE(start + 4);
      if (length < preludeBytes + checksumBytes + headerBytes)
        throw malformed("lengths that contradict each other");
      if (crc32(bytes.subarray(start, start + 8)) !== bytes.readUInt32BE(start + 8))
        throw malformed("a wrong checksum");
      if (length > this.#maxBytes) throw malformed(`more than ${this.#maxBytes} bytes`);
      if (bytes.length - start < length) break;
      const end = start + length - checksumBytes;
      if (crc32(bytes.subarray(start, end)) !== bytes.readUInt32BE(end)) throw malformed("a wrong checksum");
      const headersEnd = start + preludeBytes + headerBytes;
      messages.push({
        headers: readHeaders(bytes.subarray(start + preludeBytes, headersEnd)),
        payload: bytes.subarray(headersEnd, end),
      });
      start += length;
    }
    this.#rest = bytes.subarray(start);
    return messages;
  }
}

function readHeaders(bytes: Buffer): Readonly<Record<string, string>> {
  const headers: Record<string, string> = {};
  let at = 0;
  while (at < bytes.length) {
    const nameEnd = at + 1 + (bytes[at] ?? 0);
    const name = bytes.toString("utf8", at + 1, nameEnd);
    const type = bytes[nameEnd] ?? 255;
    at = nameEnd + 1;
    if (type >= valueBytes.length) throw malformed("a header of an unknown type");
    let length = valueBytes[type];
    if (length === undefined) {
      if (at + 2 > bytes.length) throw malformed("a header that is cut off");
      length = bytes.readUInt16BE(at);
      at += 2;
    }
    if (at + length > bytes.length) throw malformed("a header that is cut off");
    if (type === stringType) headers[name] = bytes.toString("utf8", at, at + length);
    at += length;
  }
  return headers;
}

function malformed(what: string): OctavoError {
  return new OctavoError("target_answer_invalid", `the target sent an event stream message with ${what}`);
}
