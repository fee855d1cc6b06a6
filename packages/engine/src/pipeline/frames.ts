import { OctavoError } from "@octavo/protocol/errors";

/**
 * A message between stages: JSON, and arrays behind it. On the wire: the length of the JSON and that of the arrays, 32 bits each, little
 * end first, then both.
 */
export interface Frame {
  readonly head: unknown;
  readonly arrays: readonly (Int32Array | Float32Array)[];
}

const PREFIX_BYTES = 8;
const MOST_HEAD_BYTES = 1 << 24;
const MOST_ARRAY_BYTES = 1 << 30;

export function encodeFrame({ head, arrays }: Frame): Uint8Array[] {
  const kinds = arrays.map((array) => [array instanceof Int32Array ? "i32" : "f32", array.length]);
  const text = Buffer.from(JSON.stringify({ head, kinds }));
  const bytes = arrays.map(
    ({ buffer, byteOffset, byteLength }) => new Uint8Array(buffer, byteOffset, byteLength),
  );
  const prefix = Buffer.alloc(PREFIX_BYTES);
  prefix.writeUInt32LE(text.length, 0);
  prefix.writeUInt32LE(
    bytes.reduce((sum, { length }) => sum + length, 0),
    4,
  );
  return [prefix, text, ...bytes];
}

/** Puts frames together from a socket's chunks. */
export class FrameReader {
  #chunks: Buffer[] = [];
  #length = 0;
  #wanted = PREFIX_BYTES;

  /** The frames that are whole with this chunk. Throws `invalid_request` for what is no frame. */
  push(chunk: Buffer): Frame[] {
    this.#chunks.push(chunk);
    this.#length += chunk.length;
    const frames: Frame[] = [];
    while (this.#length >= this.#wanted) {
      const all = this.#chunks.length === 1 ? this.#chunks[0] : Buffer.concat(this.#chunks);
      if (all === undefined) break;
      const [headBytes, arrayBytes] = [all.readUInt32LE(0), all.readUInt32LE(4)];
      if (headBytes > MOST_HEAD_BYTES || arrayBytes > MOST_ARRAY_BYTES) throw notFrame();
      const end = PREFIX_BYTES + headBytes + arrayBytes;
      this.#chunks = [all];
      this.#wanted = end;
      if (all.length < end) break;
      frames.push(
        decode(all.subarray(PREFIX_BYTES, PREFIX_BYTES + headBytes), all.subarray(end - arrayBytes, end)),
      );
      this.#chunks = [all.subarray(end)];
      this.#length = all.length - end;
      this.#wanted = PREFIX_BYTES;
    }
    return frames;
  }
}

function decode(text: Buffer, bytes: Buffer): Frame {
  let parsed: { readonly head?: unknown; readonly kinds?: unknown };
  try {
    parsed = JSON.parse(text.toString()) as typeof parsed;
  } catch {
    throw notFrame();
  }
  if (!Array.isArray(parsed.kinds)) throw notFrame();
  let at = 0;
  const arrays = parsed.kinds.map((kind: unknown) => {
    if (!Array.isArray(kind)) throw notFrame();
    const [type, length] = kind as readonly unknown[];
    if (typeof length !== "number" || !Number.isInteger(length) || length < 0) throw notFrame();
    const part = bytes.subarray(at, at + 4 * length);
    at += 4 * length;
    if (part.length !== 4 * length || (type !== "i32" && type !== "f32")) throw notFrame();
    // Their own memory: a chunk's bytes need not be aligned.
    const { buffer } = new Uint8Array(part);
    return type === "i32" ? new Int32Array(buffer) : new Float32Array(buffer);
  });
  if (at !== bytes.length) throw notFrame();
  return { head: parsed.head, arrays };
}

function notFrame(): OctavoError {
  return new OctavoError("invalid_request", "What came over the socket is no message of a pipeline stage.");
}
