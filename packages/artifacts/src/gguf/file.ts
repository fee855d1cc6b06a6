import { ArtifactFile, artifactInvalid, artifactUnsupported } from "@octavo/text/files/artifact-file";
import type { TensorInfo } from "../checkpoint/checkpoint.js";
import { GgufCursor } from "./cursor.js";
import { lowBitTensor } from "./low-bits/layouts.js";
import { ggmlLayouts, ggmlTypeName, supportedGgmlTypes } from "./types.js";

/**
 * A GGUF file's header. Source: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md (versions 2 and 3,
 * little-endian). Tensors keep the file's own names; their shapes are turned outermost first.
 */
export interface GgufHeader {
  readonly path: string;
  readonly version: number;
  readonly metadata: GgufMetadata;
  readonly tensors: readonly TensorInfo[];
}

/**
 * Integers and floats are numbers (bigint where 2^53 is exceeded), booleans and strings themselves; an array of strings
 * is a `GgufStrings`, arrays of numbers up to 32 bits and of f64 are typed arrays, other arrays plain ones.
 */
export type GgufMetadata = ReadonlyMap<string, unknown>;

const maxKeys = 65_536;
const maxTensors = 1 << 20;
const maxKeyLength = 65_535;
const maxTensorNameLength = 1024;
const maxDimensions = 4;
/** For arrays whose elements take more room in memory than in the file. */
const maxPlainArray = 16 * 1024 * 1024;
const maxAlignment = 1024 * 1024;

interface GgufHeaderOptions {
  /** The file may be cut off after its header, as a partial download is; tensor data is then not checked. */
  readonly withoutData?: boolean;
}

/** @throws OctavoError `artifact_invalid`, `artifact_unsupported` or `artifact_not_found` */
export function readGgufHeader(path: string, { withoutData = false }: GgufHeaderOptions = {}): GgufHeader {
  const file = ArtifactFile.open(path);
  try {
    return parse(file, new GgufCursor(file), withoutData ? Number.MAX_SAFE_INTEGER : file.byteLength);
  } finally {
    file[Symbol.dispose]();
  }
}

function parse(file: ArtifactFile, cursor: GgufCursor, dataEnd: number): GgufHeader {
  const { path } = file;
  if (file.byteLength < 24) throw artifactInvalid(path, "is too short to be a GGUF file");
  if (cursor.bytes(4).toString("latin1") !== "GGUF")
    throw artifactInvalid(path, "is not a GGUF file: it does not start with GGUF");
  const version = cursor.u32();
  if (version !== 0 && version % 0x10000 === 0) {
    throw artifactUnsupported(
      path,
      "is a big-endian GGUF file; convert it to little-endian (gguf-convert-endian)",
    );
  }
  if (version !== 2 && version !== 3) {
    throw artifactUnsupported(path, `is GGUF version ${version}; versions 2 and 3 are read`);
  }
  const numTensors = cursor.count("tensors", 24);
  const numKeys = cursor.count("metadata keys", 13);
  if (numTensors > maxTensors)
    throw cursor.invalid(`claims ${numTensors} tensors; at most ${maxTensors} are accepted`);
  if (numKeys > maxKeys)
    throw cursor.invalid(`claims ${numKeys} metadata keys; at most ${maxKeys} are accepted`);

  const metadata = readMetadata(cursor, numKeys);
  const entries = readEntries(path, cursor, numTensors);
  const alignment = readAlignment(path, metadata);
  const dataStart = Math.ceil(cursor.position / alignment) * alignment;
  return { path, version, metadata, tensors: placeTensors(path, entries, alignment, dataStart, dataEnd) };
}

function readMetadata(cursor: GgufCursor, numKeys: number): Map<string, unknown> {
  const metadata = new Map<string, unknown>();
  for (let i = 0; i < numKeys; i++) {
    const key = cursor.string("a metadata key");
    if (key.length === 0 || key.length > maxKeyLength)
      throw cursor.invalid(`has a metadata key of ${key.length} characters`);
    if (metadata.has(key)) throw cursor.invalid(`has the metadata key ${JSON.stringify(key)} twice`);
    metadata.set(key, readValue(cursor, cursor.u32(), key));
  }
  return metadata;
}

function readValue(cursor: GgufCursor, type: number, key: string): unknown {
  switch (type) {
    case 0:
      return cursor.u8();
    case 1:
      return cursor.i8();
    case 2:
      return cursor.u16();
    case 3:
      return cursor.i16();
    case 4:
      return cursor.u32();
    case 5:
      return cursor.i32();
    case 6:
      return cursor.f32();
    case 7:
      return cursor.u8() !== 0;
    case 8:
      return cursor.string(`the value of ${key}`);
    case 9:
      return readArray(cursor, key);
    case 10:
      return cursor.u64();
    case 11:
      return cursor.i64();
    case 12:
      return cursor.f64();
    default:
      throw cursor.invalid(`gives ${JSON.stringify(key)} the unknown value type ${type}`);
  }
}

/** A copy, since bytes in the window may be unaligned. */
const typedArrays = new Map([
  [0, { bytes: 1, make: (data: ArrayBuffer) => new Uint8Array(data) }],
  [1, { bytes: 1, make: (data: ArrayBuffer) => new Int8Array(data) }],
  [2, { bytes: 2, make: (data: ArrayBuffer) => new Uint16Array(data) }],
  [3, { bytes: 2, make: (data: ArrayBuffer) => new Int16Array(data) }],
  [4, { bytes: 4, make: (data: ArrayBuffer) => new Uint32Array(data) }],
  [5, { bytes: 4, make: (data: ArrayBuffer) => new Int32Array(data) }],
  [6, { bytes: 4, make: (data: ArrayBuffer) => new Float32Array(data) }],
  [12, { bytes: 8, make: (data: ArrayBuffer) => new Float64Array(data) }],
]);

/** Fewest bytes one element takes in the file. Arrays of arrays are refused, as ggml's own reader does. */
const plainElementBytes = new Map([
  [7, 1],
  [8, 8],
  [10, 8],
  [11, 8],
]);

function readArray(cursor: GgufCursor, key: string): unknown {
  const type = cursor.u32();
  const what = `elements in ${JSON.stringify(key.slice(0, 200))}`;
  const typed = typedArrays.get(type);
  if (typed !== undefined) {
    const source = cursor.bytes(cursor.count(what, typed.bytes) * typed.bytes);
    const copy = new ArrayBuffer(source.length);
    new Uint8Array(copy).set(source);
    return typed.make(copy);
  }
  const elementBytes = plainElementBytes.get(type);
  if (elementBytes === undefined)
    throw cursor.invalid(`gives ${JSON.stringify(key)} elements of a type that arrays cannot hold (${type})`);
  const count = cursor.count(what, elementBytes);
  if (count > maxPlainArray)
    throw cursor.invalid(`claims ${count} ${what}; at most ${maxPlainArray} are accepted`);
  if (type === 8) return cursor.strings(count, what);
  const values: unknown[] = [];
  for (let i = 0; i < count; i++) values.push(readValue(cursor, type, key));
  return values;
}

interface Entry {
  readonly name: string;
  readonly shape: readonly number[];
  readonly typeId: number;
  readonly offset: number;
}

function readEntries(path: string, cursor: GgufCursor, numTensors: number): Entry[] {
  const entries: Entry[] = [];
  const names = new Set<string>();
  for (let i = 0; i < numTensors; i++) {
    const name = cursor.string("a tensor name");
    if (name.length === 0 || name.length > maxTensorNameLength) {
      throw cursor.invalid(`has a tensor name of ${name.length} characters`);
    }
    const label = `tensor ${JSON.stringify(name)}`;
    if (names.has(name)) throw artifactInvalid(path, `has ${label} twice`);
    names.add(name);
    const numDimensions = cursor.u32();
    if (numDimensions < 1 || numDimensions > maxDimensions) {
      throw artifactInvalid(
        path,
        `${label} claims ${numDimensions} dimensions; a tensor has 1 to ${maxDimensions}`,
      );
    }
    const shape: number[] = [];
    for (let d = 0; d < numDimensions; d++) {
      const size = cursor.u64();
      if (typeof size === "bigint" || size < 1)
        throw artifactInvalid(path, `${label} has an impossible dimension ${size}`);
      shape.unshift(size);
    }
    const typeId = cursor.u32();
    const offset = cursor.u64();
    if (typeof offset === "bigint")
      throw artifactInvalid(path, `${label} has the impossible offset ${offset}`);
    entries.push({ name, shape, typeId, offset });
  }
  return entries;
}

function readAlignment(path: string, metadata: GgufMetadata): number {
  const alignment = metadata.get("general.alignment") ?? 32;
  const valid =
    typeof alignment === "number" &&
    Number.isInteger(alignment) &&
    alignment >= 8 &&
    alignment <= maxAlignment &&
    (alignment & (alignment - 1)) === 0;
  if (!valid)
    throw artifactInvalid(path, `has a general.alignment that is no power of two from 8 to ${maxAlignment}`);
  return alignment;
}

/** Alignment leaves gaps between tensors, which is the format's rule; overlaps and data beyond the end are refused. */
function placeTensors(
  path: string,
  entries: readonly Entry[],
  alignment: number,
  dataStart: number,
  dataEnd: number,
): TensorInfo[] {
  const tensors = entries.map((entry) => placeTensor(path, entry, alignment, dataStart));
  let end = dataStart;
  let previous = "";
  for (const tensor of tensors.toSorted((a, b) => a.offset - b.offset)) {
    const label = `tensor ${JSON.stringify(tensor.name)}`;
    if (tensor.offset < end) throw artifactInvalid(path, `${label} overlaps ${previous}`);
    end = tensor.offset + tensor.byteLength;
    previous = label;
    if (end > dataEnd) {
      throw artifactInvalid(path, `is truncated: ${label} ends at byte ${end}, the file has ${dataEnd}`);
    }
  }
  return tensors;
}

function placeTensor(path: string, entry: Entry, alignment: number, dataStart: number): TensorInfo {
  const label = `tensor ${JSON.stringify(entry.name)}`;
  const layout = ggmlLayouts.get(entry.typeId);
  if (layout === undefined) {
    throw artifactUnsupported(
      path,
      `${label} is ${ggmlTypeName(entry.typeId)}; supported are ${supportedGgmlTypes}`,
    );
  }
  const columns = entry.shape.at(-1) ?? 1;
  if (columns % layout.blockElements !== 0) {
    throw artifactInvalid(
      path,
      `${label} has rows of ${columns} elements, not a multiple of the ${layout.blockElements} in a ${layout.name} block`,
    );
  }
  let byteLength = (columns / layout.blockElements) * layout.blockBytes;
  for (const size of entry.shape.slice(0, -1)) byteLength *= size;
  if (entry.offset % alignment !== 0) {
    throw artifactInvalid(path, `${label} lies at ${entry.offset}, which is not aligned to ${alignment}`);
  }
  const offset = dataStart + entry.offset;
  if (!Number.isSafeInteger(byteLength) || !Number.isSafeInteger(offset + byteLength)) {
    throw artifactInvalid(path, `${label} has an impossible shape [${entry.shape.join(", ")}]`);
  }
  const tensor = { name: entry.name, type: layout.type, shape: entry.shape, path, offset, byteLength };
  const { lowBits } = layout;
  return lowBits === undefined ? tensor : lowBitTensor(lowBits, tensor);
}
