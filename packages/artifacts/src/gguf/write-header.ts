/** A metadata value with its GGUF type, since JavaScript has one number type. Source: docs/gguf.md of ggml, version 3. */
export type GgufValue =
  | { readonly type: "u8" | "i8" | "u16" | "i16" | "u32" | "i32" | "f32" | "f64"; readonly value: number }
  | { readonly type: "u64" | "i64"; readonly value: number | bigint }
  | { readonly type: "bool"; readonly value: boolean }
  | { readonly type: "string"; readonly value: string }
  | {
      readonly type: "array";
      readonly of: Exclude<GgufValue["type"], "array">;
      readonly value: readonly unknown[];
    };

export const u32 = (value: number): GgufValue => ({ type: "u32", value });
export const f32 = (value: number): GgufValue => ({ type: "f32", value });
export const ggufText = (value: string): GgufValue => ({ type: "string", value });

interface GgufHeaderFields {
  readonly metadata: Readonly<Record<string, GgufValue>>;
  /** Under GGUF's names, shapes outermost first. */
  readonly tensors: readonly GgufTensorEntry[];
  /** 32 when absent. */
  readonly alignment?: number;
  readonly version?: number;
}

interface GgufTensorEntry {
  readonly name: string;
  /** ggml's type number. */
  readonly typeId: number;
  readonly shape: readonly number[];
  readonly byteLength: number;
}

export const defaultGgufAlignment = 32;

const valueTypes = {
  u8: 0,
  i8: 1,
  u16: 2,
  i16: 3,
  u32: 4,
  i32: 5,
  f32: 6,
  bool: 7,
  string: 8,
  array: 9,
  u64: 10,
  i64: 11,
  f64: 12,
} as const satisfies Record<GgufValue["type"], number>;

/** The tensors' bytes follow in order, each padded to the alignment. */
export function encodeGgufHeader(file: GgufHeaderFields): Uint8Array {
  const alignment = file.alignment ?? defaultGgufAlignment;
  const metadata: Record<string, GgufValue> = {
    ...file.metadata,
    ...(file.alignment !== undefined && { "general.alignment": { type: "u32", value: file.alignment } }),
  };
  const header = new ByteWriter();
  header.raw(Buffer.from("GGUF"));
  header.u32(file.version ?? 3);
  header.u64(file.tensors.length);
  header.u64(Object.keys(metadata).length);
  for (const [key, value] of Object.entries(metadata)) {
    header.string(key);
    header.u32(valueTypes[value.type]);
    writeValue(header, value);
  }
  let offset = 0;
  for (const tensor of file.tensors) {
    header.string(tensor.name);
    header.u32(tensor.shape.length);
    for (const size of tensor.shape.toReversed()) header.u64(size);
    header.u32(tensor.typeId);
    header.u64(offset);
    offset += Math.ceil(tensor.byteLength / alignment) * alignment;
  }
  header.align(alignment);
  return header.bytes();
}

function writeValue(out: ByteWriter, value: GgufValue): void {
  if (value.type !== "array") return writeScalar(out, value.type, value.value);
  out.u32(valueTypes[value.of]);
  out.u64(value.value.length);
  for (const item of value.value) writeScalar(out, value.of, item);
}

function writeScalar(out: ByteWriter, type: Exclude<GgufValue["type"], "array">, value: unknown): void {
  if (type === "string") return out.string(String(value));
  const buffer = Buffer.alloc(8);
  const number = Number(value);
  switch (type) {
    case "u8":
    case "bool":
      return out.raw(buffer.subarray(0, buffer.writeUInt8(number)));
    case "i8":
      return out.raw(buffer.subarray(0, buffer.writeInt8(number)));
    case "u16":
      return out.raw(buffer.subarray(0, buffer.writeUInt16LE(number)));
    case "i16":
      return out.raw(buffer.subarray(0, buffer.writeInt16LE(number)));
    case "u32":
      return out.u32(number);
    case "i32":
      return out.raw(buffer.subarray(0, buffer.writeInt32LE(number)));
    case "f32":
      return out.raw(buffer.subarray(0, buffer.writeFloatLE(number)));
    case "f64":
      return out.raw(buffer.subarray(0, buffer.writeDoubleLE(number)));
    case "u64":
      return out.u64(value as number | bigint);
    case "i64":
      return out.raw(buffer.subarray(0, buffer.writeBigInt64LE(BigInt(value as number | bigint))));
  }
}

class ByteWriter {
  readonly #parts: Uint8Array[] = [];
  #length = 0;

  raw(bytes: Uint8Array): void {
    this.#parts.push(bytes);
    this.#length += bytes.byteLength;
  }
  u32(value: number): void {
    const buffer = Buffer.alloc(4);
    buffer.writeUInt32LE(value);
    this.raw(buffer);
  }
  u64(value: number | bigint): void {
    const buffer = Buffer.alloc(8);
    buffer.writeBigUInt64LE(BigInt(value));
    this.raw(buffer);
  }
  string(value: string): void {
    const bytes = Buffer.from(value);
    this.u64(bytes.byteLength);
    this.raw(bytes);
  }
  align(alignment: number): void {
    const rest = this.#length % alignment;
    if (rest > 0) this.raw(Buffer.alloc(alignment - rest));
  }
  bytes(): Buffer {
    return Buffer.concat(this.#parts);
  }
}
