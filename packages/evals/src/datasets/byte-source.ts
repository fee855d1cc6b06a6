import { createReadStream } from "node:fs";
import { invalidFile } from "./place.js";

/** Reads of a file come in pieces of this size; they are what a streamed dataset has in memory. */
const pieceBytes = 256 * 1024;

/** Bytes that can be read from their start any number of times. */
export interface ByteSource {
  /** Names them in errors. */
  readonly path: string;
  bytes(): AsyncIterable<Uint8Array>;
}

export function fileSource(path: string): ByteSource {
  return { path, bytes: () => readFile(path) };
}

async function* readFile(path: string): AsyncGenerator<Uint8Array> {
  const stream = createReadStream(path, { highWaterMark: pieceBytes });
  try {
    for await (const piece of stream) yield piece as Buffer;
  } catch (error) {
    throw invalidFile(path, `cannot be read: ${readProblem(error)}`, error);
  }
}

/** Why a file could not be read, in words. */
export function readProblem(error: unknown): string {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  if (code === "ENOENT") return "there is no such file";
  if (code === "EISDIR") return "it is a folder; name a file in it";
  if (code === "EACCES") return "permission was denied";
  return error instanceof Error ? error.message : String(error);
}
