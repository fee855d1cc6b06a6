import { isUtf8 } from "node:buffer";
import type { ByteSource } from "./byte-source.js";
import { maxLineBytes } from "./lines.js";
import { invalidFile, invalidRecord, type Place } from "./place.js";

const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;
const openBracket = 0x5b;
const closeBracket = 0x5d;
const openBrace = 0x7b;
const closeBrace = 0x7d;

export interface ArrayElement {
  readonly value: unknown;
  readonly place: Place;
}

/**
 * The elements of a file that is one JSON array. Brackets and strings are followed byte by byte to find where elements
 * end, so that one element is in memory and never the file.
 * @throws OctavoError `dataset_invalid` that counts elements from 1
 */
export async function* readJsonArray(
  source: ByteSource,
  limitBytes = maxLineBytes,
): AsyncGenerator<ArrayElement> {
  const { path } = source;
  let number = 0;
  let depth = 0;
  let inString = false;
  let isEscaped = false;
  let hasEnded = false;
  let parts: Buffer[] = [];
  let partBytes = 0;

  const keep = (bytes: Buffer): void => {
    partBytes += bytes.length;
    if (partBytes > limitBytes) {
      const place: Place = { path, unit: "element", number: number + 1 };
      throw invalidRecord(place, undefined, `is longer than ${limitBytes} bytes`);
    }
    parts.push(Buffer.from(bytes));
  };
  /** The element that ends here; undefined for the nothing of an empty array. */
  const finish = (isLast: boolean): ArrayElement | undefined => {
    const bytes = Buffer.concat(parts);
    parts = [];
    partBytes = 0;
    const isBlank = bytes.toString("latin1").trim() === "";
    if (isBlank && isLast && number === 0) return undefined;
    number++;
    return {
      value: parseElement(bytes, { path, unit: "element", number }),
      place: { path, unit: "element", number },
    };
  };

  for await (const chunk of source.bytes()) {
    const piece = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    let start = 0;
    for (let at = 0; at < piece.length; at++) {
      const byte = piece[at];
      if (inString) {
        if (isEscaped) isEscaped = false;
        else if (byte === backslash) isEscaped = true;
        else if (byte === quote) inString = false;
        continue;
      }
      if (depth === 0) {
        if (isSpaceOrMark(byte)) continue;
        if (hasEnded) throw invalidFile(path, "goes on after its array");
        if (byte !== openBracket) throw invalidFile(path, "is no JSON array");
        depth = 1;
        start = at + 1;
      } else if (byte === quote) inString = true;
      else if (byte === openBracket || byte === openBrace) depth++;
      else if (byte === closeBrace && depth > 1) depth--;
      else if (byte === closeBracket || (byte === comma && depth === 1)) {
        if (byte === closeBracket && --depth > 0) continue;
        keep(piece.subarray(start, at));
        start = at + 1;
        hasEnded = byte === closeBracket;
        const element = finish(hasEnded);
        if (element !== undefined) yield element;
      }
    }
    if (depth > 0 && start < piece.length) keep(piece.subarray(start));
  }
  if (!hasEnded) throw invalidFile(path, `ends inside its array, after element ${number}`);
}

/** White space of JSON, or a byte of the byte order mark. */
function isSpaceOrMark(byte: number | undefined): boolean {
  return (
    byte === 0x20 ||
    byte === 0x0a ||
    byte === 0x0d ||
    byte === 0x09 ||
    byte === 0xef ||
    byte === 0xbb ||
    byte === 0xbf
  );
}

function parseElement(bytes: Buffer, place: Place): unknown {
  if (!isUtf8(bytes)) throw invalidRecord(place, undefined, "is not valid UTF-8");
  try {
    return JSON.parse(bytes.toString("utf8"));
  } catch (error) {
    const reason = error instanceof Error ? error.message : "unreadable";
    throw invalidRecord(place, undefined, `is not JSON (${reason})`, error);
  }
}
