import { createHash } from "node:crypto";
import { readTensorNow } from "../checkpoint/read-tensor.js";
import type { QuantizedModule } from "./quantized-module.js";

interface Groups {
  readonly inputs: number;
  readonly groups: number;
  readonly groupSize: number;
}

/**
 * The inputs sorted by the group that the tensor `leaf` gives them, stably: packed column j is input `order[j]`. Undefined
 * when there is no such tensor, when it is unused (-1 throughout) and when the inputs are sorted already.
 */
export function columnOrder(module: QuantizedModule, leaf: string, shape: Groups): Int32Array | undefined {
  const { inputs, groups, groupSize } = shape;
  if (!module.has(leaf)) return undefined;
  const tensor = module.need(leaf, ["I32", "I64"]);
  module.expectShape(leaf, [inputs], `a layer of ${inputs} inputs`);
  const { buffer } = readTensorNow(tensor);
  const groupOf =
    tensor.dtype === "I32" ? new Int32Array(buffer) : Float64Array.from(new BigInt64Array(buffer), Number);
  if (groupOf.every((group) => group === -1)) return undefined;
  const next = Int32Array.from({ length: groups }, (_, group) => group * groupSize);
  const order = new Int32Array(inputs);
  let isSorted = true;
  for (const [input, group] of groupOf.entries()) {
    if (group < 0 || group >= groups) {
      throw module.invalid(leaf, `puts input ${input} in group ${group}; the groups are 0 to ${groups - 1}`);
    }
    const at = next[group] ?? 0;
    if (at >= (group + 1) * groupSize) {
      throw module.invalid(leaf, `puts more than ${groupSize} inputs in group ${group}`);
    }
    order[at] = input;
    next[group] = at + 1;
    isSorted &&= at === input;
  }
  return isSorted ? undefined : order;
}

/** Equal for equal orders. */
export function orderKey(order: Int32Array | undefined): string {
  return order === undefined ? "in order" : createHash("sha256").update(order).digest("hex");
}
