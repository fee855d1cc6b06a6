import { type Backend, type KvCache, kvLayersOf, type Matrix, type Op, type Vector } from "@octavo/kernels";
import { OctavoError } from "@octavo/protocol";
import {
  type MatrixPlan,
  type PlannedOp,
  type VectorPlan,
  weightsIn,
} from "@octavo/artifacts/program/model-plan";
import { viewBytes } from "../output/output-tensor.js";
import type { SequenceState } from "./hidden-states.js";
import type { ExpertsOp, LayerStage } from "./layer-stages.js";
import { floatMatrix, hiddenOf, rowPlan, timesMatrix } from "./matrix-products.js";

const blockSize = 16;

/** Receives what a matrix multiplies: the rows of all tokens, or of those that were sent to the expert it belongs to. */
export type InputObserver = (weight: MatrixPlan, rows: readonly Float32Array[]) => Promise<void>;

/** One layer of a model on the backend, with weights in single precision. */
export class LayerRunner implements Disposable {
  readonly #backend: Backend;
  readonly #stages: readonly LayerStage[];
  readonly #matrices: ReadonlyMap<MatrixPlan, Matrix>;
  readonly #vectors: ReadonlyMap<VectorPlan, Vector>;
  readonly #cache: KvCache;

  private constructor(
    backend: Backend,
    stages: readonly LayerStage[],
    matrices: ReadonlyMap<MatrixPlan, Matrix>,
    vectors: ReadonlyMap<VectorPlan, Vector>,
    cache: KvCache,
  ) {
    this.#backend = backend;
    this.#stages = stages;
    this.#matrices = matrices;
    this.#vectors = vectors;
    this.#cache = cache;
  }

  /** @param weights by tensor name */
  static async create(
    backend: Backend,
    stages: readonly LayerStage[],
    weights: ReadonlyMap<string, Float32Array>,
    maxTokens: number,
  ): Promise<LayerRunner> {
    const numBlocks = Math.ceil(maxTokens / blockSize);
    const kvLayers = kvLayersOf(stages.flatMap(({ ops }) => ops));
    const cache = backend.createKvCache({
      // A backend's cache has a layer, even where nothing attends.
      layers: kvLayers.length > 0 ? kvLayers : [{ numKvHeads: 1, headDim: 2 }],
      numBlocks,
      blockSize,
      dtype: "f32",
    });
    const matrices = new Map<MatrixPlan, Matrix>();
    const vectors = new Map<VectorPlan, Vector>();
    const runner = new LayerRunner(backend, stages, matrices, vectors, cache);
    try {
      for (const op of stages.flatMap((stage) => stage.ops)) {
        for (const weight of weightsIn(op)) {
          if (weight.kind === "matrix") matrices.set(weight, await createMatrix(backend, weight, weights));
          else vectors.set(weight, createVector(backend, weight, weights));
        }
      }
      return runner;
    } catch (error) {
      runner[Symbol.dispose]();
      throw error;
    }
  }

  /** Runs one sequence through the layer: hidden states in, hidden states out. */
  async run(state: SequenceState, observe: InputObserver): Promise<SequenceState> {
    const flowing = new Map(state);
    for (const stage of this.#stages) {
      const rows = await this.#runStage(stage, flowing);
      for (const { weight, column, width } of stage.linears) {
        await observe(
          weight,
          rows.map((row) => row.subarray(column, column + width)),
        );
      }
      for (const mixture of stage.mixtures) await this.#observeExperts(mixture, rows, observe);
      for (const { buffer, column, width } of stage.outputs) {
        const values = new Float32Array(rows.length * width);
        for (const [i, row] of rows.entries()) values.set(row.subarray(column, column + width), i * width);
        flowing.set(buffer, values);
      }
    }
    return flowing;
  }

  /** The rows of each expert: what comes into it, and what its last matrix multiplies. */
  async #observeExperts(op: ExpertsOp, rows: readonly Float32Array[], observe: InputObserver): Promise<void> {
    const { experts, topK } = op;
    const column = op.in.column ?? 0;
    const first = op.scores.column ?? 0;
    const routed = experts.map((): Float32Array[] => []);
    for (const row of rows) {
      const chosen = highest(row.subarray(first, first + experts.length), topK);
      for (const index of chosen) routed[index]?.push(row.subarray(column, column + (op.in.width ?? 0)));
    }
    for (const [index, { gate, up, down }] of experts.entries()) {
      const inputs = routed[index] ?? [];
      if (inputs.length === 0) continue;
      await observe(gate, inputs);
      const product = await this.#times(inputs, gate);
      const ups = up === undefined ? undefined : await this.#times(inputs, up);
      await observe(
        down,
        inputs.map((_, row) => {
          const gates = product.subarray(row * gate.rows, row * gate.rows + down.cols);
          const factors =
            ups?.subarray(row * down.cols, (row + 1) * down.cols) ??
            product.subarray(row * gate.rows + down.cols, (row + 1) * gate.rows);
          return gates.map((value, at) => (value / (1 + Math.exp(-value))) * factors[at]!);
        }),
      );
    }
  }

  async #times(rows: readonly Float32Array[], plan: MatrixPlan): Promise<Float32Array> {
    const stacked = new Float32Array(rows.length * plan.cols);
    for (const [index, row] of rows.entries()) stacked.set(row, index * plan.cols);
    return timesMatrix(this.#backend, stacked, expectMade(this.#matrices.get(plan)));
  }

  async #runStage(stage: LayerStage, flowing: SequenceState): Promise<Float32Array[]> {
    const { width } = stage;
    const owned: Disposable[] = [];
    try {
      let numTokens = 0;
      const entries: Op[] = [];
      for (const { buffer, column, width: columns } of stage.inputs) {
        const values = flowing.get(buffer) ?? new Float32Array();
        numTokens = values.length / columns;
        const table = await floatMatrix(this.#backend, values, numTokens, columns, "activations");
        owned.push(table);
        entries.push({ op: "embedding", weight: table, out: { buffer: 0, column, width: columns } });
      }
      const head = await floatMatrix(this.#backend, new Float32Array(width), 1, width, "head");
      owned.push(head);
      const program = this.#backend.compile({
        buffers: [width, width],
        ops: [
          ...entries,
          ...stage.ops.map((op) => this.#realize(op)),
          { op: "gather", in: { buffer: 0 }, out: { buffer: 1 } },
        ],
        hidden: { buffer: 1 },
        head: { weight: head },
        maxTokens: numTokens,
      });
      owned.push(program);
      const { rows } = await this.#backend.execute(program, this.#cache, rowPlan(numTokens, blockSize));
      return rows.map((row) => hiddenOf(row.hidden));
    } finally {
      for (const handle of owned) handle[Symbol.dispose]();
    }
  }

  #realize(op: PlannedOp): Op {
    switch (op.op) {
      case "layer_norm": {
        const { bias, weight, ...rest } = op;
        const added = bias && { bias: expectMade(this.#vectors.get(bias)) };
        return { ...rest, weight: expectMade(this.#vectors.get(weight)), ...added };
      }
      case "linear": {
        const { bias, weight, ...rest } = op;
        return {
          ...rest,
          weight: expectMade(this.#matrices.get(weight)),
          ...(bias !== undefined && { bias: expectMade(this.#vectors.get(bias)) }),
        };
      }
      case "rms_norm":
        return { ...op, weight: expectMade(this.#vectors.get(op.weight)) };
      case "attention": {
        const { sinks, ...rest } = op;
        return { ...rest, ...(sinks !== undefined && { sinks: expectMade(this.#vectors.get(sinks)) }) };
      }
      case "experts": {
        const { selectionBias: bias, expertScales: scales, ...rest } = op;
        const added = {
          ...(bias && { selectionBias: expectMade(this.#vectors.get(bias)) }),
          ...(scales && { expertScales: expectMade(this.#vectors.get(scales)) }),
        };
        return {
          ...rest,
          ...added,
          experts: op.experts.map(({ gate, up, down }) => ({
            gate: expectMade(this.#matrices.get(gate)),
            down: expectMade(this.#matrices.get(down)),
            ...(up !== undefined && { up: expectMade(this.#matrices.get(up)) }),
          })),
        };
      }
      case "scale": {
        const { by, ...rest } = op;
        return { ...rest, ...(by !== undefined && { by: expectMade(this.#vectors.get(by)) }) };
      }
      case "rope":
      case "gated_activation":
      case "add":
      case "clamp":
      case "round_e4m3":
      case "activation":
      case "sigmoid_gate":
        return op;
      case "gate":
      case "head_linear":
      case "split":
      case "convolution":
      case "gated_delta_rule":
      case "state_space":
      case "embedding":
      case "exchange":
      case "add_given":
      case "receive":
      case "send":
      case "gather":
        throw new OctavoError("internal_error", `A layer cannot run ${op.op}.`);
    }
  }

  [Symbol.dispose](): void {
    for (const handle of [...this.#matrices.values(), ...this.#vectors.values()]) handle[Symbol.dispose]();
    this.#cache[Symbol.dispose]();
  }
}

/** Indices of the largest values, the lower one where values are equal. */
function highest(values: Float32Array, count: number): number[] {
  return Array.from(values.keys())
    .toSorted((a, b) => values[b]! - values[a]! || a - b)
    .slice(0, count);
}

function createMatrix(
  backend: Backend,
  { cols, sources }: MatrixPlan,
  weights: ReadonlyMap<string, Float32Array>,
): Promise<Matrix> {
  return backend.createMatrix(
    sources.map(({ name, shape }) => ({
      type: "f32",
      rows: shape[0] ?? 0,
      cols,
      bytes: { data: viewBytes(expectMade(weights.get(name))) },
      name,
    })),
  );
}

function createVector(
  backend: Backend,
  { sources, length }: VectorPlan,
  weights: ReadonlyMap<string, Float32Array>,
): Vector {
  if (sources.length === 0) {
    const data = viewBytes(new Float32Array(length).fill(1));
    return backend.createVector([{ type: "f32", length, bytes: { data }, name: "ones" }]);
  }
  return backend.createVector(
    sources.map(({ name, shape }) => ({
      type: "f32",
      length: shape[0] ?? 0,
      bytes: { data: viewBytes(expectMade(weights.get(name))) },
      name,
    })),
  );
}

function expectMade<T>(made: T | undefined): T {
  if (made === undefined)
    throw new OctavoError("internal_error", "A layer's weight was used before it was made.");
  return made;
}
