import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { openCheckpoint } from "@octavo/engine";
import { readTensor } from "@octavo/artifacts/checkpoint/read-tensor";
import { dequantize, dequantizeGroups, isGrouped } from "@octavo/artifacts/testing/dequantize";
import { type StoredType } from "@octavo/artifacts/testing/quantize";
import { OctavoError } from "@octavo/protocol";

/** Every matrix of an artifact as the engine reads it: by its readers of the formats, element by element. */
export async function artifactValues(path: string): Promise<ReadonlyMap<string, Float32Array>> {
  const { tensors } = await openCheckpoint(path);
  const values = new Map<string, Float32Array>();
  for (const tensor of tensors.values()) {
    const { type, recipe, shape } = tensor;
    const [rows = 0, cols = 0] = shape;
    if (recipe === undefined) {
      values.set(tensor.name, dequantize(type as StoredType, await readTensor(tensor)));
      continue;
    }
    const { values: stored, scales, zeros, ...rest } = await recipe.assemble();
    if (!isGrouped(type) || scales === undefined) {
      throw new OctavoError("internal_error", `${tensor.name} is ${type} with a recipe`);
    }
    const bytes = stored instanceof Uint8Array ? stored : await readTensor(stored);
    values.set(tensor.name, dequantizeGroups({ type, rows, cols, ...rest }, bytes, { scales, zeros }));
  }
  return values;
}

/** Every file of a folder. */
export function folderContents(folder: string): Record<string, string> {
  const names = readdirSync(folder).toSorted();
  return Object.fromEntries(names.map((name) => [name, readFileSync(join(folder, name), "latin1")]));
}
