import { createHash } from "node:crypto";
import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { type PackedForm, type WeightType, weightTypes } from "@octavo/kernels";

/**
 * A file of packed matrices:
 *
 *     "OCTAVOPW"  8 bytes
 *     length      u32, little-endian, of the index
 *     digest      32 bytes, SHA-256 of the index
 *     index       JSON, see below
 *     matrices    each at a multiple of 4096 from the file's start, gaps zero
 *
 * Offsets in the index count from the first matrix.
 */
export interface CachedMatrix {
  readonly form: PackedForm;
  readonly offset: number;
  readonly byteLength: number;
  readonly checksum: string;
}

const magic = Buffer.from("OCTAVOPW", "latin1");
const fixedBytes = magic.length + 4 + 32;
const maxIndexBytes = 16 * 2 ** 20;
const page = 4096;
/**
 * Size and alignment of writes: the system keeps what is written in whole huge pages in huge pages, and maps each at once.
 * Unaligned writes would leave small pages at every seam, a quarter of the file.
 */
const writeBytes = 8 * 2 ** 20;

export interface CacheIndex {
  /** Offsets from the file's start. */
  readonly matrices: readonly CachedMatrix[];
}

export function roundToPage(bytes: number): number {
  return Math.ceil(bytes / page) * page;
}

/** The index of a file written under `key` that has its full length; undefined for any other file. */
export function readCacheIndex(path: string, key: string): CacheIndex | undefined {
  let file: number;
  try {
    file = openSync(path, "r");
  } catch {
    return undefined;
  }
  try {
    const head = readExactly(file, 0, fixedBytes);
    if (head === undefined || !head.subarray(0, magic.length).equals(magic)) return undefined;
    const length = head.readUInt32LE(magic.length);
    if (length > maxIndexBytes) return undefined;
    const text = readExactly(file, fixedBytes, length);
    if (text === undefined || !sha256(text).equals(head.subarray(magic.length + 4))) return undefined;
    const stored = parseMatrices(JSON.parse(text.toString("utf8")), key);
    if (stored === undefined) return undefined;
    const start = roundToPage(fixedBytes + length);
    const matrices = stored.map((one) => ({ ...one, offset: start + one.offset }));
    const end = matrices.reduce((last, { offset, byteLength }) => Math.max(last, offset + byteLength), start);
    return fstatSync(file).size === end ? { matrices } : undefined;
  } finally {
    closeSync(file);
  }
}

/** Parsed by hand: every start reads it, and importing the schema library would delay most of them. */
function parseMatrices(index: unknown, key: string): CachedMatrix[] | undefined {
  if (!isRecord(index) || index["key"] !== key || !Array.isArray(index["matrices"])) return undefined;
  const matrices = index["matrices"].map(parseMatrix);
  return matrices.every((matrix) => matrix !== undefined) ? matrices : undefined;
}

function parseMatrix(entry: unknown): CachedMatrix | undefined {
  if (!isRecord(entry)) return undefined;
  const { offset, byteLength, checksum } = entry;
  const form = parseForm(entry["form"]);
  if (form === undefined || typeof checksum !== "string") return undefined;
  return isSize(offset, 0) && isSize(byteLength, 1) ? { form, offset, byteLength, checksum } : undefined;
}

function parseForm(form: unknown): PackedForm | undefined {
  if (!isRecord(form)) return undefined;
  const { type, rows, cols, groupSize, hasZeros } = form;
  if (!isWeightType(type) || !isSize(rows, 1) || !isSize(cols, 1)) return undefined;
  if (groupSize !== undefined && !isSize(groupSize, 1)) return undefined;
  if (hasZeros !== undefined && typeof hasZeros !== "boolean") return undefined;
  return { type, rows, cols, groupSize, hasZeros };
}

function isWeightType(type: unknown): type is WeightType {
  return typeof type === "string" && Object.hasOwn(weightTypes, type);
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}

function isSize(value: unknown, least: number): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= least;
}

/** Writes a file under a temporary name. Fails as `node:fs` does. */
export async function writeCacheFile(
  path: string,
  key: string,
  matrices: readonly Omit<CachedMatrix & { readonly bytes: Uint8Array }, "offset" | "byteLength">[],
): Promise<void> {
  let end = 0;
  const entries = matrices.map(({ form, checksum, bytes }) => {
    const offset = roundToPage(end);
    end = offset + bytes.byteLength;
    return { form, offset, byteLength: bytes.byteLength, checksum };
  });
  const index = Buffer.from(JSON.stringify({ key, matrices: entries }));
  const length = Buffer.alloc(4);
  length.writeUInt32LE(index.length);
  const head = Buffer.concat([magic, length, sha256(index), index]);
  const start = roundToPage(head.length);
  const zeros = Buffer.alloc(page);
  const parts: Uint8Array[] = [head, zeros.subarray(0, start - head.length)];
  for (const { bytes } of matrices)
    parts.push(bytes, zeros.subarray(0, roundToPage(bytes.byteLength) - bytes.byteLength));
  // No padding after the last matrix.
  parts.pop();
  const file = await open(path, "wx", 0o644);
  try {
    let position = 0;
    for (const pieces of chunksOf(parts, writeBytes)) position += await writeAll(file, pieces, position);
  } finally {
    await file.close();
  }
}

/** The same bytes in chunks of `byteLength`; the last may be shorter. */
export function* chunksOf(parts: readonly Uint8Array[], byteLength: number): Generator<Uint8Array[]> {
  let chunk: Uint8Array[] = [];
  let room = byteLength;
  for (const part of parts) {
    for (let done = 0; done < part.byteLength;) {
      const piece = part.subarray(done, done + room);
      chunk.push(piece);
      done += piece.byteLength;
      room -= piece.byteLength;
      if (room > 0) continue;
      yield chunk;
      chunk = [];
      room = byteLength;
    }
  }
  if (chunk.length > 0) yield chunk;
}

async function writeAll(file: FileHandle, pieces: readonly Uint8Array[], position: number): Promise<number> {
  const { bytesWritten } = await file.writev(pieces, position);
  let begin = 0;
  for (const piece of pieces) {
    // A nearly full disk may accept a part; writing the rest then gives the error.
    for (let done = Math.max(0, bytesWritten - begin); done < piece.byteLength;)
      done += (await file.write(piece, done, piece.byteLength - done, position + begin + done)).bytesWritten;
    begin += piece.byteLength;
  }
  return begin;
}

function readExactly(file: number, position: number, length: number): Buffer | undefined {
  const buffer = Buffer.alloc(length);
  for (let done = 0; done < length;) {
    const count = readSync(file, buffer, done, length - done, position + done);
    if (count === 0) return undefined;
    done += count;
  }
  return buffer;
}

function sha256(data: Uint8Array): Buffer {
  return createHash("sha256").update(data).digest();
}
