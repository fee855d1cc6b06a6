import type { TensorInfo } from "./checkpoint.js";

/** What the plan calls one tensor of several that are stored as one. */
export function sliceName(name: string, index: number): string {
  return `${name}[${index}]`;
}

/** A tensor cut along its outermost dimension: `shape[0]` tensors of the dimensions that are left, named `name[index]`. */
export function tensorSlices(tensor: TensorInfo): TensorInfo[] {
  const { recipe, loadedBytes, ...whole } = tensor;
  const [count = 1, ...shape] = whole.shape;
  const byteLength = whole.byteLength / count;
  const recipes = recipe?.slices?.(count);
  return Array.from({ length: count }, (_, index) => {
    const part = recipes?.[index];
    return {
      ...whole,
      name: sliceName(whole.name, index),
      shape,
      offset: whole.offset + index * byteLength,
      byteLength,
      ...(loadedBytes !== undefined && { loadedBytes: loadedBytes / count }),
      ...(part !== undefined && { recipe: part }),
    };
  });
}
