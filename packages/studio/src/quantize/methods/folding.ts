import type { ModelConfig } from "@octavo/engine";
import type { PlannedOp } from "@octavo/artifacts/program/model-plan";
import type { BufferRef } from "@octavo/kernels";
import type { ExpertsOp, LayerStage, StageLinear } from "../calibration/layer-stages.js";

/** Linear layers that read one input, and the place before them where a scale of that input's columns can be undone. */
export interface FoldableInput {
  readonly linears: readonly Omit<StageLinear, "column">[];
  /** Columns of the input. */
  readonly width: number;
  /** Tells which columns must have one scale: `columnOf[c]` is the producer's column of input column c. */
  readonly columnOf: Int32Array;
  /** Columns of the producer. */
  readonly producerWidth: number;
  readonly producer: Producer;
}

/** A norm whose weight, or rows of linear layers whose outputs, make the input. */
type Producer =
  | { readonly kind: "norm"; readonly weight: string; readonly offset: number }
  | { readonly kind: "rows"; readonly parts: readonly ProducerRows[] };

/** Rows `[first, first + count)` of a tensor give the producer's columns from `column` on. */
interface ProducerRows {
  readonly weight: string;
  readonly bias: string | undefined;
  readonly first: number;
  readonly count: number;
  readonly column: number;
}

/**
 * Where an input's columns may be scaled at no cost: behind a norm, through attention's values (query heads that share a value head
 * share scales), through the linear half of a gated MLP. Inputs that something else reads too are left out.
 */
export function foldableInputs(stage: LayerStage, config: ModelConfig): FoldableInput[] {
  const byColumn = new Map<number, StageLinear[]>();
  for (const linear of stage.linears) {
    byColumn.set(linear.column, [...(byColumn.get(linear.column) ?? []), linear]);
  }
  const found: FoldableInput[] = [];
  for (const [column, linears] of byColumn) {
    const width = linears[0]?.width ?? 0;
    const readers = stage.ops.filter((op) => readsOf(op).some((ref) => overlaps(ref, column, width)));
    if (readers.length !== linears.length || linears.some((linear) => linear.width !== width)) continue;
    const maker = stage.ops.findLast((op) => "out" in op && overlaps(op.out, column, width));
    const input = maker === undefined ? undefined : producerOf(maker, stage, config, width);
    if (input !== undefined) found.push({ linears, width, ...input });
  }
  return [...found, ...stage.mixtures.flatMap(({ experts }) => experts.flatMap(foldableExpert))];
}

/** The last matrix of an expert, whose input's columns are the rows of its linear half. */
function foldableExpert({ gate, up, down }: ExpertsOp["experts"][number]): FoldableInput[] {
  const width = down.cols;
  // Both halves in one tensor are not quantised at all.
  const half = up?.sources[0] ?? (gate.sources.length === 2 ? gate.sources[1] : undefined);
  if (half === undefined) return [];
  const rows = { weight: half.name, bias: undefined, first: 0, count: width, column: 0 };
  return [
    {
      linears: [{ weight: down, width }],
      width,
      columnOf: Int32Array.from({ length: width }, (_, i) => i),
      producerWidth: width,
      producer: { kind: "rows", parts: [rows] },
    },
  ];
}

type Origin = Pick<FoldableInput, "columnOf" | "producerWidth" | "producer">;

function producerOf(
  maker: PlannedOp,
  stage: LayerStage,
  { numHeads, numKvHeads, headDim }: ModelConfig,
  width: number,
): Origin | undefined {
  const straight = Int32Array.from({ length: width }, (_, i) => i);
  if (maker.op === "rms_norm") {
    const weight = maker.weight.sources[0]?.name;
    if (maker.groupSize !== undefined || weight === undefined) return undefined;
    const producer = { kind: "norm", weight, offset: maker.weightOffset ?? 0 } as const;
    return { columnOf: straight, producerWidth: width, producer };
  }
  if (maker.op === "gated_activation") {
    const up = { ...maker.in, column: (maker.in.column ?? 0) + width, width };
    return rowsOf(up, stage, straight);
  }
  if (maker.op !== "attention" || maker.v === undefined) return undefined;
  const perKv = numHeads / numKvHeads;
  const columnOf = straight.map((i) => Math.floor(Math.floor(i / headDim) / perKv) * headDim + (i % headDim));
  return rowsOf(maker.v, stage, columnOf);
}

/** The rows of linear layers that write the columns; undefined unless they write all of them and nothing changes them after. */
function rowsOf(ref: BufferRef, stage: LayerStage, columnOf: Int32Array): Origin | undefined {
  const [column, width] = [ref.column ?? 0, ref.width ?? 0];
  const parts: ProducerRows[] = [];
  for (const op of stage.ops) {
    const touches = writesOf(op).some((written) => overlaps(written, column, width));
    if (!touches) continue;
    if (op.op !== "linear") return undefined;
    let at = op.out.column ?? 0;
    for (const [index, source] of op.weight.sources.entries()) {
      const rows = source.shape[0] ?? 0;
      const first = Math.max(0, column - at);
      const last = Math.min(rows, column + width - at);
      if (first < last) {
        const bias = op.bias?.sources[index]?.name;
        parts.push({ weight: source.name, bias, first, count: last - first, column: at + first - column });
      }
      at += rows;
    }
  }
  const covered = parts.reduce((sum, part) => sum + part.count, 0);
  return covered === width
    ? { columnOf, producerWidth: width, producer: { kind: "rows", parts } }
    : undefined;
}

function overlaps(ref: BufferRef, column: number, width: number): boolean {
  const start = ref.column ?? 0;
  return start < column + width && column < start + (ref.width ?? 0);
}

function readsOf(op: PlannedOp): readonly BufferRef[] {
  if (op.op === "attention") return [op.q, op.k, ...(op.v === undefined ? [] : [op.v])];
  if (op.op === "rope" || op.op === "scale") return [op.on];
  if (op.op === "rms_norm") return op.residual === undefined ? [op.in] : [op.in, op.residual];
  return "in" in op ? [op.in] : [];
}

function writesOf(op: PlannedOp): readonly BufferRef[] {
  if (op.op === "rope" || op.op === "scale") return [op.on];
  return "out" in op ? [op.out] : [];
}

/** Weights of a layer under folding, and what has been done to each matrix: W' = W * inputScales / outputScales. */
export interface FoldedWeights {
  readonly weights: Map<string, Float32Array>;
  readonly inputScales: Map<string, Float32Array>;
  readonly outputScales: Map<string, Float32Array>;
  /** Columns of each matrix. */
  readonly columns: ReadonlyMap<string, number>;
  /** Names of tensors that are not as they were. */
  readonly changed: Set<string>;
}

/**
 * Divides the input's columns by `scales` where they are made, and multiplies the columns of the matrices that read them.
 * @param scales by the producer's columns
 * @param round a value as the tensor of that name will store it
 */
export function fold(
  folded: FoldedWeights,
  input: FoldableInput,
  scales: Float32Array,
  round: (name: string, values: Float32Array) => Float32Array,
): void {
  const { producer, columnOf } = input;
  const effective = scales.slice();
  if (producer.kind === "norm") {
    const { weight, offset } = producer;
    const before = folded.weights.get(weight)!;
    const after = round(
      weight,
      before.map((value, i) => (value + offset) / scales[i]! - offset),
    );
    // What the stored norm really divides by; the matrices make up for its rounding.
    for (let i = 0; i < after.length; i++) {
      const made = after[i]! + offset;
      effective[i] = made === 0 ? 1 : (before[i]! + offset) / made;
    }
    folded.weights.set(weight, after);
    folded.changed.add(weight);
  } else {
    for (const part of producer.parts) scaleRows(folded, part, scales, round);
  }
  for (const { weight } of input.linears) {
    for (const { name, shape } of weight.sources) {
      const [rows = 0, cols = 0] = shape;
      const values = folded.weights.get(name)!.slice();
      const scale = Float32Array.from(columnOf, (column) => effective[column]!);
      for (let row = 0; row < rows; row++) {
        for (let col = 0; col < cols; col++) {
          values[row * cols + col] = values[row * cols + col]! * scale[col]!;
        }
      }
      folded.weights.set(name, values);
      folded.inputScales.set(name, scale);
      folded.changed.add(name);
    }
  }
}

function scaleRows(
  folded: FoldedWeights,
  { weight, bias, first, count, column }: ProducerRows,
  scales: Float32Array,
  round: (name: string, values: Float32Array) => Float32Array,
): void {
  const values = folded.weights.get(weight)!.slice();
  const outputs = folded.outputScales.get(weight);
  const cols = folded.columns.get(weight) ?? values.length;
  const rowScales = outputs ?? new Float32Array(values.length / cols).fill(1);
  for (let i = 0; i < count; i++) {
    const scale = scales[column + i]!;
    const row = first + i;
    for (let at = row * cols; at < (row + 1) * cols; at++) values[at] = values[at]! / scale;
    rowScales[row] = rowScales[row]! * scale;
  }
  folded.weights.set(weight, values);
  folded.outputScales.set(weight, rowScales);
  folded.changed.add(weight);
  if (bias === undefined) return;
  const shifted = folded.weights.get(bias)!.slice();
  for (let i = 0; i < count; i++) shifted[first + i] = shifted[first + i]! / scales[column + i]!;
  folded.weights.set(bias, round(bias, shifted));
  folded.changed.add(bias);
}
