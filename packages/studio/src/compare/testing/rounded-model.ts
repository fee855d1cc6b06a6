import { cpSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { joinSafetensors } from "@octavo/artifacts/testing/write-safetensors";

interface Entry {
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly data_offsets: readonly [number, number];
}

/**
 * Writes a bf16 model of one safetensors file again with its linear layers rounded to the nearest of 2^bits steps, one
 * scale per `groupSize` inputs, as compressed-tensors lays them out: `weight_packed` with q + 2^(bits - 1), LSB first.
 */
export function writeRoundedModel(from: string, to: string, bits: 4 | 8, groupSize: number): void {
  for (const name of readdirSync(from)) {
    if (/\.(?:json|jinja)$/.test(name) && name !== "package.json") cpSync(join(from, name), join(to, name));
  }
  const configPath = join(to, "config.json");
  const config = JSON.parse(readFileSync(configPath, "utf8")) as Record<string, unknown>;
  const quantization = { quant_method: "compressed-tensors", format: "pack-quantized" };
  writeFileSync(configPath, JSON.stringify({ ...config, quantization_config: quantization }));

  const file = readFileSync(join(from, "model.safetensors"));
  const headerLength = Number(file.readBigUInt64LE(0));
  const header = JSON.parse(file.toString("utf8", 8, 8 + headerLength)) as Record<string, Entry>;
  const out: Record<string, unknown> = {};
  const parts: Uint8Array[] = [];
  let offset = 0;
  const write = (name: string, dtype: string, shape: readonly number[], bytes: Uint8Array): void => {
    out[name] = { dtype, shape, data_offsets: [offset, offset + bytes.byteLength] };
    parts.push(bytes);
    offset += bytes.byteLength;
  };
  for (const [name, entry] of Object.entries(header)) {
    if (name === "__metadata__") continue;
    const [begin, end] = entry.data_offsets;
    const bytes = file.subarray(8 + headerLength + begin, 8 + headerLength + end);
    if (!name.endsWith("_proj.weight")) {
      write(name, entry.dtype, entry.shape, bytes);
      continue;
    }
    const [rows = 0, cols = 0] = entry.shape;
    const { packed, scales } = round(bytes, rows, cols, bits, groupSize);
    const module = name.slice(0, -"weight".length);
    write(`${module}weight_packed`, "I32", [rows, (cols * bits) / 32], new Uint8Array(packed.buffer));
    write(`${module}weight_scale`, "F32", [rows, cols / groupSize], new Uint8Array(scales.buffer));
    write(
      `${module}weight_shape`,
      "I64",
      [2],
      new Uint8Array(BigInt64Array.of(BigInt(rows), BigInt(cols)).buffer),
    );
  }
  writeFileSync(join(to, "model.safetensors"), joinSafetensors(JSON.stringify(out), Buffer.concat(parts)));
}

/** `bytes` are bf16 `[rows, cols]`. */
function round(
  bytes: Uint8Array,
  rows: number,
  cols: number,
  bits: number,
  groupSize: number,
): { packed: Uint32Array; scales: Float32Array } {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const word = new DataView(new ArrayBuffer(4));
  const valueAt = (index: number): number => {
    word.setUint32(0, view.getUint16(index * 2, true) << 16);
    return word.getFloat32(0);
  };
  const half = 2 ** (bits - 1);
  const perWord = 32 / bits;
  const packed = new Uint32Array((rows * cols) / perWord);
  const scales = new Float32Array((rows * cols) / groupSize);
  for (let group = 0; group < scales.length; group++) {
    let largest = 0;
    for (let i = 0; i < groupSize; i++) largest = Math.max(largest, Math.abs(valueAt(group * groupSize + i)));
    const scale = largest / (half - 1) || 1;
    scales[group] = scale;
    for (let i = 0; i < groupSize; i++) {
      const index = group * groupSize + i;
      const code = Math.min(half - 1, Math.max(-half, Math.round(valueAt(index) / scale))) + half;
      const at = Math.floor(index / perWord);
      packed[at] = (packed[at] ?? 0) | (code << ((index % perWord) * bits));
    }
  }
  return { packed, scales };
}
