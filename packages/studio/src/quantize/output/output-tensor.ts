/** A tensor of a safetensors file to be written. */
export interface OutputTensor {
  readonly name: string;
  /** As safetensors spells it. */
  readonly dtype: "F32" | "F16" | "BF16" | "I32" | "I64" | "I8" | "U8" | "F8_E4M3";
  readonly shape: readonly number[];
  readonly bytes: Uint8Array;
}

/** A quantised matrix: what is stored, and the values that it stands for. */
export interface EncodedMatrix {
  readonly tensors: readonly OutputTensor[];
  /** `[rows, cols]` */
  readonly values: Float32Array;
}

/** A typed array's bytes, not copied. */
export function viewBytes(array: ArrayBufferView): Uint8Array {
  return new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
}

/**
 * A safetensors file in pieces: u64 length, JSON header padded to eight bytes, tensors without gaps. Larger elements come first, so
 * that each tensor starts at a multiple of its element size, as the reference writer orders them.
 */
export function* safetensorsFile(tensors: readonly OutputTensor[]): Generator<Uint8Array> {
  const ordered = tensors.toSorted(
    (a, b) => elementBytes(b.dtype) - elementBytes(a.dtype) || (a.name < b.name ? -1 : 1),
  );
  const header: Record<string, unknown> = { __metadata__: { format: "pt" } };
  let offset = 0;
  for (const { name, dtype, shape, bytes } of ordered) {
    header[name] = { dtype, shape, data_offsets: [offset, offset + bytes.byteLength] };
    offset += bytes.byteLength;
  }
  const text = Buffer.from(JSON.stringify(header));
  const padding = (8 - (text.byteLength % 8)) % 8;
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.byteLength + padding));
  yield Buffer.concat([length, text, Buffer.alloc(padding, " ")]);
  for (const { bytes } of ordered) yield bytes;
}

function elementBytes(dtype: OutputTensor["dtype"]): number {
  return { I64: 8, F32: 4, I32: 4, F16: 2, BF16: 2, I8: 1, U8: 1, F8_E4M3: 1 }[dtype];
}
