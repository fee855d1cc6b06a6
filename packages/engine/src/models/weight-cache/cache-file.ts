import { createHash } from "node:crypto";
import { type FileHandle, open } from "node:fs/promises";
import type { PackedForm } from "@octavo/kernels";

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
const writeBytes = 8 * 2 ** 20;

/** Types whose packed bytes alone make the matrix. */
const packableTypes = [
  "f32",
  "f16",
  "bf16",
  "q4_0",
  "q4_1",
  "q5_0",
  "q5_1",
  "q8_0",
  "q2_k",
  "q3_k",
  "q4_k",
  "q5_k",
  "q6_k",
  "iq4_nl",
  "iq4_xs",
  "mxfp4",
  "int2",
  "int3",
  "int4",
  "int8",
  "uint8",
] as const;
export interface CacheIndex {
  /** Offsets from the file's start. */
  readonly matrices: readonly CachedMatrix[];
}

export function roundToPage(bytes: number): number {
  return Math.ceil(bytes / page) * page;
}

/** The index of a file written under `key` that is whole as far as its length tells; undefined for any other file. */
export async function readCacheIndex(path: string, key: string): Promise<CacheIndex | undefined> {
  let file: FileHandle;
  try {
    file = await open(path);
  } catch {
    return undefined;
  }
  try {
    const head = await readExactly(file, 0, fixedBytes);
    if (head === undefined || !head.subarray(0, magic.length).equals(magic)) return undefined;
    const length = head.readUInt32LE(magic.length);
    if (length > maxIndexBytes) return undefined;
    const text = await readExactly(file, fixedBytes, length);
    if (text === undefined || !sha256(text).equals(head.subarray(magic.length + 4))) return undefined;
    const stored = parseMatrices(JSON.parse(text.toString("utf8")), key);
    if (stored === undefined) return undefined;
    const start = roundToPage(fixedBytes + length);
    const matrices = stored.map((one) => ({ ...one, offset: start + one.offset }));
    const end = matrices.reduce((last, { offset, byteLength }) => Math.max(last, offset + byteLength), start);
    return (await file.stat()).size === end ? { matrices } : undefined;
  } finally {
    await file.close();
  }
}

/** By hand, not by a schema: every start reads it, and most need no other. */
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
  const { rows, cols, groupSize, hasZeros } = form;
  const type = packableTypes.find((packable) => packable === form["type"]);
  if (type === undefined || !isSize(rows, 1) || !isSize(cols, 1)) return undefined;
  if (groupSize !== undefined && !isSize(groupSize, 1)) return undefined;
  if (hasZeros !== undefined && typeof hasZeros !== "boolean") return undefined;
  return { type, rows, cols, groupSize, hasZeros };
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}

function isSize(value: unknown, least: number): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= least;
}

/** Writes a whole file under a name that nobody reads yet. Fails as `node:fs` does. */
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
  const file = await open(path, "wx", 0o644);
  try {
    await writeAt(file, head, 0);
    for (const [i, { bytes }] of matrices.entries())
      await writeAt(file, bytes, start + (entries[i]?.offset ?? 0));
  } finally {
    await file.close();
  }
}

async function writeAt(file: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  for (let done = 0; done < bytes.byteLength;) {
    const count = Math.min(writeBytes, bytes.byteLength - done);
    done += (await file.write(bytes, done, count, position + done)).bytesWritten;
  }
}

async function readExactly(file: FileHandle, position: number, length: number): Promise<Buffer | undefined> {
  const buffer = Buffer.alloc(length);
  for (let done = 0; done < length;) {
    const { bytesRead } = await file.read(buffer, done, length - done, position + done);
    if (bytesRead === 0) return undefined;
    done += bytesRead;
  }
  return buffer;
}

function sha256(data: Uint8Array): Buffer {
  return createHash("sha256").update(data).digest();
}
