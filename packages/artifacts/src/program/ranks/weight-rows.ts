import type { MatrixParts, MatrixRecipe, StoredTensor, TensorInfo } from "../../checkpoint/checkpoint.js";
import type { MatrixPlan, VectorPlan } from "../model-plan.js";

/** Neighbouring rows of a matrix, or elements of a vector. */
export interface OwnRows {
  readonly first: number;
  readonly width: number;
}

/** The rows of `ranges`, one range after another. */
export function matrixRows(plan: MatrixPlan, ranges: readonly OwnRows[]): MatrixPlan {
  const sources = ranges.flatMap((range) => cut(plan.sources, ([rows = 0]) => rows, range, tensorRows));
  return { kind: "matrix", rows: total(ranges), cols: plan.cols, sources };
}

/** The elements of `ranges`, one range after another. */
export function vectorElements(plan: VectorPlan, ranges: readonly OwnRows[]): VectorPlan {
  const length = (shape: readonly number[]): number => shape.reduce((product, size) => product * size, 1);
  const sources = ranges.flatMap((range) => cut(plan.sources, length, range, tensorElements));
  return { kind: "vector", length: total(ranges), sources };
}

function total(ranges: readonly OwnRows[]): number {
  return ranges.reduce((sum, { width }) => sum + width, 0);
}

/** What `range` covers of tensors that lie one after another. */
function cut(
  tensors: readonly TensorInfo[],
  lengthOf: (shape: readonly number[]) => number,
  { first, width }: OwnRows,
  part: (tensor: TensorInfo, range: OwnRows) => TensorInfo,
): TensorInfo[] {
  let before = 0;
  return tensors.flatMap((tensor) => {
    const length = lengthOf(tensor.shape);
    const begin = Math.max(first - before, 0);
    const end = Math.min(first + width - before, length);
    before += length;
    if (begin >= end) return [];
    return [end - begin === length ? tensor : part(tensor, { first: begin, width: end - begin })];
  });
}

function tensorRows({ recipe, ...whole }: TensorInfo, { first, width }: OwnRows): TensorInfo {
  const [rows = 1, ...rest] = whole.shape;
  const named = { ...whole, name: `${whole.name}[${first}:${first + width}]`, shape: [width, ...rest] };
  if (recipe !== undefined) return { ...named, recipe: recipeRows(recipe, rows, { first, width }) };
  return { ...named, ...bytesOf(whole, rows, { first, width }) };
}

function tensorElements(tensor: TensorInfo, { first, width }: OwnRows): TensorInfo {
  const length = tensor.shape.reduce((product, size) => product * size, 1);
  return {
    ...tensor,
    name: `${tensor.name}[${first}:${first + width}]`,
    shape: [width],
    ...bytesOf(tensor, length, { first, width }),
  };
}

/** Of a tensor of `rows` rows of equal size. */
function bytesOf(
  { offset, byteLength }: Pick<StoredTensor, "offset" | "byteLength">,
  rows: number,
  { first, width }: OwnRows,
): Pick<StoredTensor, "offset" | "byteLength"> {
  const rowBytes = byteLength / rows;
  return { offset: offset + first * rowBytes, byteLength: width * rowBytes };
}

function recipeRows(recipe: MatrixRecipe, rows: number, range: OwnRows): MatrixRecipe {
  return { layout: recipe.layout, assemble: async () => partsRows(await recipe.assemble(), rows, range) };
}

function partsRows(parts: MatrixParts, rows: number, range: OwnRows): MatrixParts {
  const { values, scales, zeros, scaleRows = rows, ...rest } = parts;
  const { first, width } = range;
  const rowsOf = (all: Float32Array): Float32Array => {
    const columns = all.length / scaleRows;
    const own = new Float32Array(width * columns);
    for (let row = 0; row < width; row++) {
      const from = ((first + row) % scaleRows) * columns;
      own.set(all.subarray(from, from + columns), row * columns);
    }
    return own;
  };
  const rowBytes = values.byteLength / rows;
  return {
    ...rest,
    values:
      values instanceof Uint8Array
        ? values.subarray(first * rowBytes, (first + width) * rowBytes)
        : { ...values, shape: [width, ...values.shape.slice(1)], ...bytesOf(values, rows, range) },
    ...(scales !== undefined && { scales: rowsOf(scales) }),
    ...(zeros !== undefined && { zeros: rowsOf(zeros) }),
  };
}
