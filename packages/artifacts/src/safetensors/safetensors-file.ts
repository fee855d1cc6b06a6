import { ArtifactFile, artifactInvalid, artifactUnsupported } from "@octavo/text/files/artifact-file";
import { parseArtifactJson } from "@octavo/text/files/bounded-json";
import type { StoredTensor, TensorInfo } from "../checkpoint/checkpoint.js";
import type { FloatType } from "../checkpoint/tensor-storage.js";

/**
 * safetensors: u64 little-endian header length, JSON header, tensor data. The header maps each tensor's name to dtype,
 * shape and `data_offsets` within the data; the data must be covered exactly, without gap or overlap.
 * Source: https://github.com/huggingface/safetensors (README, "Format").
 */
export interface SafetensorsHeader {
  readonly path: string;
  readonly tensors: readonly StoredTensor[];
  readonly metadata: ReadonlyMap<string, string>;
}

/** The format's own bound. */
const maxHeaderBytes = 100_000_000;
const maxDimensions = 8;
const maxNameLength = 1024;

/** Bits per element of every dtype the format knows, so that an unknown dtype and an unsupported one get different errors. */
const dtypeBits: Readonly<Record<string, number>> = {
  BOOL: 8,
  F4: 4,
  F6_E2M3: 6,
  F6_E3M2: 6,
  U8: 8,
  I8: 8,
  F8_E5M2: 8,
  F8_E4M3: 8,
  F8_E8M0: 8,
  I16: 16,
  U16: 16,
  F16: 16,
  BF16: 16,
  I32: 32,
  U32: 32,
  F32: 32,
  C64: 64,
  F64: 64,
  I64: 64,
  U64: 64,
};

const floatTypes: Readonly<Record<string, FloatType>> = { F32: "f32", F16: "f16", BF16: "bf16" };

/** The storage type of an unquantised dtype; undefined for any other. */
export function floatTypeOf(dtype: string): FloatType | undefined {
  return Object.hasOwn(floatTypes, dtype) ? floatTypes[dtype] : undefined;
}

/** Buffers that old exporters saved beside the weights; they are computed, not learned, and nothing reads them. */
export function isComputedBuffer(name: string): boolean {
  return /(?:^|\.)(?:rotary_emb\.inv_freq|position_ids)$/.test(name);
}

/**
 * Reads and checks the header; the data is not touched.
 * @throws OctavoError `artifact_invalid` for a file that breaks the format, `artifact_not_found`
 */
export function readSafetensorsHeader(path: string): SafetensorsHeader {
  const file = ArtifactFile.open(path);
  try {
    return parse(file);
  } finally {
    file[Symbol.dispose]();
  }
}

interface Entry {
  readonly name: string;
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly begin: number;
  readonly end: number;
}

function parse(file: ArtifactFile): SafetensorsHeader {
  const { path } = file;
  if (file.byteLength < 8) throw artifactInvalid(path, "is too short to be a safetensors file");
  const declared = file.read(0, 8).readBigUInt64LE();
  if (declared > BigInt(maxHeaderBytes)) {
    throw artifactInvalid(path, `claims a header of ${declared} bytes; the format allows ${maxHeaderBytes}`);
  }
  const headerBytes = Number(declared);
  const dataStart = 8 + headerBytes;
  if (dataStart > file.byteLength) {
    throw artifactInvalid(
      path,
      `is truncated: its header has ${headerBytes} bytes, the file ${file.byteLength}`,
    );
  }
  const bytes = file.read(8, headerBytes);
  if (bytes[0] !== 0x7b)
    throw artifactInvalid(path, "is not a safetensors file: its header does not start with {");
  const header = parseArtifactJson(bytes, path, { uniqueNames: true }) as Record<string, unknown>;

  const metadata = new Map<string, string>();
  const entries: Entry[] = [];
  for (const [name, value] of Object.entries(header)) {
    if (name === "__metadata__") readMetadata(path, value, metadata);
    else entries.push(readEntry(path, name, value));
  }
  checkCoverage(path, entries, file.byteLength - dataStart);
  return { path, metadata, tensors: entries.flatMap((entry) => toStoredTensor(path, entry, dataStart)) };
}

function readMetadata(path: string, value: unknown, metadata: Map<string, string>): void {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw artifactInvalid(path, "has a __metadata__ that is not an object");
  }
  for (const [key, item] of Object.entries(value)) {
    if (typeof item !== "string")
      throw artifactInvalid(path, "has a __metadata__ value that is not a string");
    metadata.set(key, item);
  }
}

function readEntry(path: string, name: string, value: unknown): Entry {
  const label = `tensor ${JSON.stringify(name.slice(0, 200))}`;
  if (name.length > maxNameLength)
    throw artifactInvalid(path, `${label} has a name of ${name.length} characters`);
  if (typeof value !== "object" || value === null)
    throw artifactInvalid(path, `${label} is not described by an object`);
  const { dtype, shape, data_offsets: offsets } = value as Record<string, unknown>;
  const bits = typeof dtype === "string" && Object.hasOwn(dtypeBits, dtype) ? dtypeBits[dtype] : undefined;
  if (typeof dtype !== "string" || bits === undefined) {
    throw artifactInvalid(path, `${label} has an unknown dtype ${JSON.stringify(dtype)?.slice(0, 50)}`);
  }
  if (!isSizeList(shape)) throw artifactInvalid(path, `${label} has a shape that is not a list of sizes`);
  if (shape.length > maxDimensions) throw artifactInvalid(path, `${label} has ${shape.length} dimensions`);
  if (!isSizeList(offsets) || offsets.length !== 2) {
    throw artifactInvalid(path, `${label} has data_offsets that are not two byte offsets`);
  }
  const [begin, end] = offsets as [number, number];
  if (begin > end) throw artifactInvalid(path, `${label} ends at ${end}, before it begins at ${begin}`);

  let elements = 1;
  for (const size of shape) {
    elements *= size;
    if (!Number.isSafeInteger(elements * bits))
      throw artifactInvalid(path, `${label} has an impossible shape [${shape.join(", ")}]`);
  }
  if (elements * bits !== (end - begin) * 8) {
    throw artifactInvalid(
      path,
      `${label} has ${end - begin} bytes of data, but ${dtype} [${shape.join(", ")}] takes ${Math.ceil((elements * bits) / 8)}`,
    );
  }
  return { name, dtype, shape, begin, end };
}

function isSizeList(value: unknown): value is number[] {
  return Array.isArray(value) && value.every((size) => Number.isSafeInteger(size) && size >= 0);
}

function checkCoverage(path: string, entries: readonly Entry[], dataBytes: number): void {
  const ordered = entries.toSorted((a, b) => a.begin - b.begin || a.end - b.end);
  let covered = 0;
  let previous = "the start of the data";
  for (const entry of ordered) {
    const label = `tensor ${JSON.stringify(entry.name)}`;
    if (entry.end > dataBytes) {
      throw artifactInvalid(
        path,
        `${label} ends at byte ${entry.end} of the data, which has ${dataBytes}: is the file truncated?`,
      );
    }
    if (entry.begin < covered) throw artifactInvalid(path, `${label} overlaps ${previous}`);
    if (entry.begin > covered) throw artifactInvalid(path, `leaves a hole between ${previous} and ${label}`);
    covered = entry.end;
    previous = label;
  }
  if (covered !== dataBytes)
    throw artifactInvalid(path, `has ${dataBytes - covered} bytes after its last tensor`);
}

function toStoredTensor(path: string, entry: Entry, dataStart: number): StoredTensor[] {
  if (isComputedBuffer(entry.name)) return [];
  const { name, dtype, shape, begin, end } = entry;
  return [{ name, dtype, shape, path, offset: dataStart + begin, byteLength: end - begin }];
}

/**
 * A tensor that is used as it is stored.
 * @throws OctavoError `artifact_unsupported` for a dtype that no kernel takes by itself; `hint` ends the message
 */
export function plainTensor(tensor: StoredTensor, hint: string): TensorInfo {
  const { dtype, ...rest } = tensor;
  const type = floatTypeOf(dtype);
  if (type === undefined) {
    throw artifactUnsupported(tensor.path, `tensor ${JSON.stringify(tensor.name)} is ${dtype}; ${hint}`);
  }
  return { ...rest, type };
}
