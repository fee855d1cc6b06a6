import { readFileSync, writeFileSync } from "node:fs";
import { joinSafetensors } from "./write-safetensors.js";

/** A tensor of a safetensors file under change. */
export interface EditableTensor {
  dtype: string;
  shape: number[];
  data: Buffer;
}

/** Rewrites a small safetensors file after a change of its tensors: what tests of broken checkpoints start from. */
export function editSafetensors(path: string, edit: (tensors: Map<string, EditableTensor>) => void): void {
  const file = readFileSync(path);
  const dataStart = 8 + Number(file.readBigUInt64LE(0));
  const header = JSON.parse(file.toString("utf8", 8, dataStart)) as Record<
    string,
    { dtype: string; shape: number[]; data_offsets: [number, number] }
  >;
  delete header["__metadata__"];
  const tensors = new Map<string, EditableTensor>();
  for (const [name, { dtype, shape, data_offsets: offsets }] of Object.entries(header)) {
    const data = Buffer.from(file.subarray(dataStart + offsets[0], dataStart + offsets[1]));
    tensors.set(name, { dtype, shape, data });
  }
  edit(tensors);
  let offset = 0;
  const edited = [...tensors].map(([name, { dtype, shape, data }]) => {
    const entry = { dtype, shape, data_offsets: [offset, offset + data.byteLength] };
    offset += data.byteLength;
    return [name, entry] as const;
  });
  const data = Buffer.concat([...tensors.values()].map((tensor) => tensor.data));
  writeFileSync(path, joinSafetensors(JSON.stringify(Object.fromEntries(edited)), data));
}
