import type { Matrix, Op, ProgramSpec } from "@octavo/kernels";

type ExpertsOp = Extract<Op, { op: "experts" }>;

/** Of a token, in all matrices but the head's; of a mixture, those of the experts that a token is sent to. */
export function multiplyAddsOf({ ops }: ProgramSpec): number {
  const sizeOf = ({ rows, cols }: Matrix): number => rows * cols;
  let sum = total(productsOf(ops), sizeOf);
  for (const op of ops)
    if (op.op === "experts") sum += (total(matricesOf(op), sizeOf) * op.topK) / op.experts.length;
  return sum;
}

/**
 * The part of the weights that a step reads which decodes one token for each stream: a table that is only looked up counts for nothing, and of a
 * mixture no more experts than the tokens can choose.
 */
export function readShareOf({ ops, head }: ProgramSpec, streams: number): number {
  const bytesOf = ({ byteLength }: Matrix): number => byteLength;
  const products = new Set(productsOf(ops));
  if (head !== undefined) products.add(head.weight);
  const lookedUp = new Set(
    ops.flatMap((op) => (op.op === "embedding" && !products.has(op.weight) ? [op.weight] : [])),
  );
  let read = total([...products], bytesOf);
  let all = read + total([...lookedUp], bytesOf);
  for (const op of ops) {
    if (op.op !== "experts") continue;
    const bytes = total(matricesOf(op), bytesOf);
    all += bytes;
    read += (bytes * Math.min(op.experts.length, op.topK * streams)) / op.experts.length;
  }
  return read / all;
}

/** Matrices that every row is multiplied with. */
function productsOf(ops: readonly Op[]): Matrix[] {
  return ops.flatMap((op) =>
    op.op === "linear" ? [op.weight] : op.op === "head_linear" ? [...op.weights] : [],
  );
}

function matricesOf({ experts }: ExpertsOp): Matrix[] {
  return experts.flatMap(({ gate, up, down }) => (up === undefined ? [gate, down] : [gate, up, down]));
}

function total(matrices: readonly Matrix[], of: (matrix: Matrix) => number): number {
  return matrices.reduce((sum, matrix) => sum + of(matrix), 0);
}
