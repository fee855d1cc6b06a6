import { isUtf8 } from "node:buffer";
import type { ByteSource } from "./byte-source.js";
import { invalidRecord } from "./place.js";

/** The longest line, hence case, of a text file. */
export const maxLineBytes = 64 * 1024 * 1024;

export interface Line {
  /** Counted from 1; empty lines count. */
  readonly number: number;
  /** Without its line feed; a carriage return before it stays. */
  readonly text: string;
}

/**
 * The lines of UTF-8 text, in batches: those that end in one piece of the source. No more than a piece and the line that
 * is being read is held. A byte order mark is dropped. With `mayBeCutOff`, a last line that ends inside a character is left out.
 * @throws OctavoError `dataset_invalid` for a line that is not UTF-8 or too long
 */
export async function* readLines(
  source: ByteSource,
  limitBytes = maxLineBytes,
  { mayBeCutOff = false }: { readonly mayBeCutOff?: boolean } = {},
): AsyncGenerator<readonly Line[]> {
  let number = 0;
  let partial: Buffer[] = [];
  let partialBytes = 0;

  const finish = (end: Buffer): Line => {
    number++;
    const bytes = partial.length === 0 ? end : Buffer.concat([...partial, end]);
    partial = [];
    partialBytes = 0;
    return { number, text: decode(bytes, source.path, number) };
  };

  for await (const chunk of source.bytes()) {
    const piece = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    const lines: Line[] = [];
    let start = 0;
    for (let end = piece.indexOf(0x0a); end !== -1; end = piece.indexOf(0x0a, start)) {
      checkLength(partialBytes + end - start, limitBytes, source.path, number + 1);
      lines.push(finish(piece.subarray(start, end)));
      start = end + 1;
    }
    if (start < piece.length) {
      // a copy: the rest would keep the whole piece alive, and sources may reuse their memory
      const rest = Buffer.from(piece.subarray(start));
      partial.push(rest);
      partialBytes += rest.length;
      checkLength(partialBytes, limitBytes, source.path, number + 1);
    }
    if (lines.length > 0) yield lines;
  }
  if (partial.length === 0 || (mayBeCutOff && number > 0 && !isUtf8(Buffer.concat(partial)))) return;
  yield [finish(Buffer.alloc(0))];
}

function checkLength(bytes: number, limitBytes: number, path: string, number: number): void {
  if (bytes <= limitBytes) return;
  throw invalidRecord(
    { path, unit: "line", number },
    undefined,
    `is longer than ${limitBytes} bytes; is the file one case a line?`,
  );
}

function decode(bytes: Buffer, path: string, number: number): string {
  if (!isUtf8(bytes)) {
    throw invalidRecord({ path, unit: "line", number }, undefined, "is not valid UTF-8; convert the file");
  }
  const hasMark = number === 1 && bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
  return bytes.toString("utf8", hasMark ? 3 : 0);
}
