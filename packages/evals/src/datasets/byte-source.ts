import { createReadStream } from "node:fs";
import { systemProblem } from "@octavo/protocol";
import { invalidFile } from "./place.js";

/** Reads of a file come in pieces of this size; they are what a streamed dataset has in memory. */
const pieceBytes = 256 * 1024;

/** Bytes that can be read from their start any number of times. */
export interface ByteSource {
  /** Names them in errors. */
  readonly path: string;
  bytes(): AsyncIterable<Uint8Array>;
}

/** The bytes of a file, for readers that go over them more than once. */
export function fileSource(path: string): ByteSource {
  return { path, bytes: () => readFile(path) };
}

async function* readFile(path: string): AsyncGenerator<Uint8Array> {
  const stream = createReadStream(path, { highWaterMark: pieceBytes });
  try {
    for await (const piece of stream) yield piece as Buffer;
  } catch (error) {
    throw invalidFile(path, `cannot be read: ${systemProblem(error)}`, error);
  }
}
