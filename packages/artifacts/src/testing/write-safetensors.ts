import { writeFileSync } from "node:fs";
import { OctavoError } from "@octavo/protocol/errors";
import { encodeValues, type WrittenType } from "./quantize.js";

/** A tensor to be written: values are converted to `type`, bytes are taken as they are. */
export interface TensorToWrite {
  readonly name: string;
  readonly type: WrittenType;
  /** Outermost first. */
  readonly shape: readonly number[];
  readonly data: Float32Array | Uint8Array;
}

export function tensorBytes(tensor: TensorToWrite): Uint8Array {
  return tensor.data instanceof Float32Array ? encodeValues(tensor.type, tensor.data) : tensor.data;
}

const dtypes: Partial<Readonly<Record<WrittenType, string>>> = { f32: "F32", f16: "F16", bf16: "BF16" };

/** A safetensors file's bytes, tensors in the order given, header padded to eight bytes as the reference writer does. */
export function encodeSafetensors(
  tensors: readonly TensorToWrite[],
  metadata: Readonly<Record<string, string>> = { format: "pt" },
): Uint8Array {
  const header: Record<string, unknown> = { __metadata__: metadata };
  const parts: Uint8Array[] = [];
  let offset = 0;
  for (const tensor of tensors) {
    const dtype = dtypes[tensor.type];
    if (dtype === undefined)
      throw new OctavoError("invalid_option", `safetensors has no dtype for ${tensor.type}`);
    const bytes = tensorBytes(tensor);
    header[tensor.name] = { dtype, shape: tensor.shape, data_offsets: [offset, offset + bytes.byteLength] };
    parts.push(bytes);
    offset += bytes.byteLength;
  }
  return joinSafetensors(JSON.stringify(header), Buffer.concat(parts));
}

/** A file of any header text over any data: what tests of broken files start from. */
export function joinSafetensors(header: string, data: Uint8Array): Uint8Array {
  const text = Buffer.from(header);
  const padded = Buffer.concat([text, Buffer.alloc((8 - (text.byteLength % 8)) % 8, " ")]);
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(padded.byteLength));
  return Buffer.concat([length, padded, data]);
}

export function writeSafetensors(
  path: string,
  tensors: readonly TensorToWrite[],
  metadata?: Readonly<Record<string, string>>,
): void {
  writeFileSync(path, encodeSafetensors(tensors, metadata));
}
