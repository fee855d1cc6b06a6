import type { BufferRef } from "@octavo/kernels";
import { OctavoError } from "@octavo/protocol/errors";
import type { TensorInfo } from "../checkpoint/checkpoint.js";
import { tensorSlices } from "../checkpoint/tensor-slices.js";
import { closestNames, isFloatType } from "../checkpoint/tensor-storage.js";
import type { ModelConfig } from "./model-config.js";
import { type RowRuns, rowsByRun } from "./row-runs.js";
import { type FusedExpertNames, transposedExperts } from "./transposed-experts.js";
import type {
  AdaptableModule,
  MatrixPlan,
  ModelPlan,
  PlannedExpert,
  PlannedHead,
  PlannedOp,
  PlannedRecurrence,
  VectorPlan,
} from "./model-plan.js";

/** One of the tensors that share an input: its name without `.weight`, and how many outputs it gives. */
interface Projection {
  readonly name: string;
  readonly rows: number;
  readonly bias?: boolean;
}

/** Projections of one input as one matrix. */
interface ProjectionGroup {
  readonly weight: MatrixPlan;
  readonly bias?: VectorPlan;
}

/** Records a model's ops and looks its tensors up, checking each shape against what the configuration implies. */
export class ProgramBuilder {
  readonly config: ModelConfig;
  readonly #tensors: ReadonlyMap<string, TensorInfo> | undefined;
  readonly #buffers: number[] = [];
  readonly #ops: PlannedOp[] = [];
  readonly #matrices = new Map<string, MatrixPlan>();
  readonly #used = new Set<string>();
  readonly #adaptable = new Map<string, AdaptableModule>();
  #numSites = 0;
  #numRecurrent = 0;

  /** @param tensors absent: plans with placeholder tensors in bf16, for sizes alone */
  constructor(config: ModelConfig, tensors?: ReadonlyMap<string, TensorInfo>) {
    this.config = config;
    this.#tensors = tensors;
  }

  /** A new activation buffer of `width` columns. */
  buffer(width: number): BufferRef {
    this.#buffers.push(width);
    return { buffer: this.#buffers.length - 1, column: 0, width };
  }

  add(op: PlannedOp): void {
    this.#ops.push(op);
  }

  /** Multiplies by a factor that may be absent, or 1. */
  scale(on: BufferRef, factor: number | undefined): void {
    if (factor !== undefined && factor !== 1) this.add({ op: "scale", on, factor });
  }

  /** Records an op that keeps state, under the next number. */
  addRecurrent(op: PlannedRecurrence): void {
    this.add({ ...op, state: this.#numRecurrent });
    this.#numRecurrent += 1;
  }

  has(name: string): boolean {
    return this.#tensors?.has(name) ?? false;
  }

  /** Whether the checkpoint has it, or may have it where its tensors are not known. */
  mayHave(name: string): boolean {
    return this.#tensors?.has(name) ?? true;
  }

  find(name: string): TensorInfo | undefined {
    return this.#tensors?.get(name);
  }

  /** The tensor, of this shape. */
  tensor(name: string, shape: readonly number[]): TensorInfo {
    return this.#tensor(name, shape);
  }

  /** The tensor `[rows, cols]` as a matrix; the same plan object each time. */
  matrix(name: string, rows: number, cols: number): MatrixPlan {
    const known = this.#matrices.get(name);
    if (known !== undefined) return known;
    const plan: MatrixPlan = { kind: "matrix", rows, cols, sources: [this.#tensor(name, [rows, cols])] };
    this.#matrices.set(name, plan);
    return plan;
  }

  /** Rows of the tensor `[sum of all runs, cols]` as a matrix; see `rowsByRun`. */
  rowsByRun(name: string, runs: RowRuns, cols: number, parts: readonly number[]): MatrixPlan {
    const rows = runs.count * runs.sizes.reduce((sum, size) => sum + size, 0);
    const sources = rowsByRun(this.#tensor(name, [rows, cols]), runs, parts);
    return {
      kind: "matrix",
      rows: sources.reduce((sum, { shape: [own = 0] }) => sum + own, 0),
      cols,
      sources,
    };
  }

  vector(name: string, length: number): VectorPlan {
    return { kind: "vector", length, sources: [this.#vectorTensor(name, length)] };
  }

  /** A vector that some formats store with further dimensions. */
  flatVector(name: string, length: number): VectorPlan {
    const shape = this.find(name)?.shape ?? [length];
    const size = shape.reduce((product, of) => product * of, 1);
    return {
      kind: "vector",
      length,
      sources: [this.#floats(this.#tensor(name, size === length ? shape : [length]))],
    };
  }

  /** The weights of a convolution of each channel by itself, `[channels, 1, taps]` or, in GGUF, `[channels, taps]`. */
  convolution(name: string, channels: number, taps: number): VectorPlan {
    const shape = this.find(name)?.shape.length === 2 ? [channels, taps] : [channels, 1, taps];
    return {
      kind: "vector",
      length: channels * taps,
      sources: [this.#floats(this.#tensor(name, shape))],
    };
  }

  #layerNorm(name: string, input: BufferRef, out: BufferRef, residual: BufferRef | undefined): void {
    const width = input.width ?? 0;
    const biasName = name.replace(/weight$/, "bias");
    this.add({
      op: "layer_norm",
      in: input,
      weight: this.vector(name, width),
      ...(this.has(biasName) && { bias: this.vector(biasName, width) }),
      out,
      eps: this.config.rmsNormEps,
      ...(residual !== undefined && { residual }),
    });
  }

  /** An RMS norm of each run of `groupSize` columns, without weights. */
  plainNorm(input: BufferRef, out: BufferRef, groupSize: number): void {
    const weight: VectorPlan = { kind: "vector", length: groupSize, sources: [] };
    this.add({ op: "rms_norm", in: input, weight, out, eps: this.config.rmsNormEps, groupSize });
  }

  /** A norm of the configuration's kind: mostly an RMS norm with the configuration's epsilon and weight offset, over `groupSize` columns at a time where given. */
  norm(
    name: string,
    input: BufferRef,
    out: BufferRef,
    options: {
      readonly groupSize?: number;
      readonly residual?: BufferRef;
      readonly weightOffset?: number;
      /** Each group has weights of its own. */
      readonly isWhole?: true;
      /** In place of the configuration's. */
      readonly eps?: number;
    } = {},
  ): void {
    const { rmsNormEps: eps, normWeightOffset, normKind } = this.config;
    if (normKind === "layer") return this.#layerNorm(name, input, out, options.residual);
    const { isWhole, ...rest } = options;
    const weight =
      isWhole === true
        ? this.flatVector(name, input.width ?? 0)
        : this.vector(name, options.groupSize ?? input.width ?? 0);
    const offset = normWeightOffset !== undefined && { weightOffset: normWeightOffset };
    this.add({ op: "rms_norm", in: input, weight, out, eps, ...offset, ...rest });
  }

  /**
   * Several projections of one input into neighbouring columns of `out`: one stacked matrix where the storage types
   * agree, otherwise one matrix each (mixed quantisations keep some of them in a finer type).
   */
  project(input: BufferRef, projections: readonly Projection[], cols: number, out: BufferRef): void {
    let column = out.column ?? 0;
    for (const group of this.#group(projections, cols)) {
      const { rows } = group.weight;
      const site = this.#site(group.weight);
      this.add({ op: "linear", in: input, ...group, site, out: { buffer: out.buffer, column, width: rows } });
      column += rows;
    }
  }

  /** An expert's gated MLP of three tensors, named without `.weight`. */
  expert(
    names: { readonly gate: string; readonly up?: string; readonly down: string },
    inner: number,
    bias: boolean,
  ): PlannedExpert {
    const { hiddenSize } = this.config;
    const first = names.up === undefined ? [names.gate] : [names.gate, names.up];
    const gateAndUp = first.map((name) => ({ name, rows: inner, bias }));
    const [gate, up] = this.#group(gateAndUp, hiddenSize);
    const [down] = this.#group([{ name: names.down, rows: hiddenSize, bias }], inner);
    if (gate === undefined || down === undefined)
      throw new OctavoError("internal_error", "An expert was planned without matrices.");
    return {
      gate: gate.weight,
      down: down.weight,
      ...(gate.bias !== undefined && { gateBias: gate.bias }),
      ...(up !== undefined && { up: up.weight }),
      ...(up?.bias !== undefined && { upBias: up.bias }),
      ...(down.bias !== undefined && { downBias: down.bias }),
    };
  }

  /**
   * All experts' gated MLPs of two tensors, named in full, `[count, 2 * inner, hidden]` (gate above up) and `[count, hidden, inner]`;
   * biases `[count, 2 * inner]`, gate's and up's in turn, and `[count, hidden]`. Unquantised ones may be transposed, gate's and up's
   * outputs in turn as well; of those that are not in turn, transformers 5 writes some as they are computed with.
   */
  fusedExperts(
    names: FusedExpertNames,
    count: number,
    inner: number,
    biases?: { readonly gateUp: string; readonly down: string },
  ): PlannedExpert[] {
    const { hiddenSize } = this.config;
    const [, rows, cols] = this.find(names.down)?.shape ?? [];
    const isPlain = names.transposed === "gate_first" && rows === hiddenSize && cols === inner;
    const transposed = isPlain && rows !== cols ? undefined : names.transposed;
    const gates = this.#slices(names.gateUp, count, 2 * inner, hiddenSize, transposed);
    const downs = this.#slices(names.down, count, hiddenSize, inner, transposed && "gate_first");
    const gateBiases = biases && this.#vectorSlices(biases.gateUp, count, 2 * inner);
    const downBiases = biases && this.#vectorSlices(biases.down, count, hiddenSize);
    return gates.flatMap((gate, index) => {
      const [down, gateBias, downBias] = [downs[index], gateBiases?.[index], downBiases?.[index]];
      if (down === undefined) return [];
      return [
        {
          gate,
          down,
          ...(gateBias !== undefined && {
            gateBias: {
              kind: "vector",
              length: 2 * inner,
              sources: [0, 1].map((first) => everySecond(gateBias, first)),
            },
          }),
          ...(downBias !== undefined && {
            downBias: { kind: "vector", length: hiddenSize, sources: [downBias] },
          }),
        } as const,
      ];
    });
  }

  #vectorSlices(name: string, count: number, length: number): TensorInfo[] {
    return tensorSlices(this.#floats(this.#tensor(name, [count, length])));
  }

  #slices(
    name: string,
    count: number,
    rows: number,
    cols: number,
    transposed: FusedExpertNames["transposed"],
  ): MatrixPlan[] {
    const isTransposed = transposed !== undefined && this.#tensors?.get(name)?.recipe === undefined;
    const whole = isTransposed
      ? transposedExperts(this.#tensor(name, [count, cols, rows]), transposed === "in_turn")
      : this.#tensor(name, [count, rows, cols]);
    if (whole.recipe !== undefined && whole.recipe.slices === undefined) {
      throw new OctavoError(
        "artifact_unsupported",
        `Tensor "${name}" in ${whole.path} holds the quantised weights of ${count} experts; Octavo reads those one by one.`,
      );
    }
    return tensorSlices(whole).map((slice) => ({ kind: "matrix", rows, cols, sources: [slice] }));
  }

  #group(projections: readonly Projection[], cols: number): ProjectionGroup[] {
    const parts = projections.map((projection) => ({
      ...projection,
      weight: this.#tensor(`${projection.name}.weight`, [projection.rows, cols]),
      biasTensor:
        projection.bias === true ? this.#vectorTensor(`${projection.name}.bias`, projection.rows) : undefined,
    }));
    const [first] = parts;
    const stackable = parts.every(
      (part) =>
        part.weight.type === first?.weight.type &&
        part.weight.recipe?.layout === first.weight.recipe?.layout &&
        (part.biasTensor === undefined) === (first.biasTensor === undefined),
    );
    return (stackable ? [parts] : parts.map((part) => [part])).map((group) => {
      const rows = group.reduce((sum, part) => sum + part.rows, 0);
      const biases = group.flatMap((part) => part.biasTensor ?? []);
      return {
        weight: { kind: "matrix", rows, cols, sources: group.map((part) => part.weight) },
        ...(biases.length > 0 && { bias: { kind: "vector", length: rows, sources: biases } }),
      };
    });
  }

  /** The site number of this matrix's linear; adapters address the modules stacked in it by site and column. */
  #site({ sources, cols }: MatrixPlan): number {
    const site = this.#numSites;
    this.#numSites += 1;
    let column = 0;
    for (const { name, shape } of sources) {
      const [rows = 0] = shape;
      this.#adaptable.set(name.replace(/\.weight$/, ""), { site, column, rows, cols });
      column += rows;
    }
    return site;
  }

  finish(hidden: BufferRef, head?: PlannedHead): ModelPlan {
    return {
      buffers: this.#buffers,
      ops: this.#ops,
      hidden,
      head,
      adaptable: this.#adaptable,
      unusedTensors: [...(this.#tensors?.keys() ?? [])].filter(
        (name) => !this.#used.has(name) && !isDerived(name),
      ),
    };
  }

  #vectorTensor(name: string, length: number): TensorInfo {
    return this.#floats(this.#tensor(name, [length]));
  }

  #floats(tensor: TensorInfo): TensorInfo {
    if (isFloatType(tensor.type)) return tensor;
    throw new OctavoError(
      "artifact_unsupported",
      `Tensor "${tensor.name}" in ${tensor.path} is stored as ${tensor.type}; vectors must be f32, f16 or bf16.`,
    );
  }

  #tensor(name: string, shape: readonly number[]): TensorInfo {
    if (this.#tensors === undefined) {
      const byteLength = 2 * shape.reduce((product, size) => product * size, 1);
      return { name, type: "bf16", shape, path: "", offset: 0, byteLength };
    }
    const tensor = this.#tensors.get(name);
    if (tensor === undefined) {
      throw new OctavoError(
        "artifact_invalid",
        `The checkpoint lacks the tensor "${name}" (${shapeText(shape)}) that ${this.config.architecture} needs. ` +
          `${closestNames(name, this.#tensors.keys())}Is a shard missing, or config.json from another model?`,
      );
    }
    if (tensor.shape.length !== shape.length || tensor.shape.some((size, axis) => size !== shape[axis])) {
      throw new OctavoError(
        "artifact_invalid",
        `Tensor "${name}" in ${tensor.path} has the shape ${shapeText(tensor.shape)}; the model's configuration implies ${shapeText(shape)}.`,
      );
    }
    this.#used.add(name);
    return tensor;
  }
}

/** Elements `first`, `first` + 2, ... of a vector that interleaves two. */
function everySecond(tensor: TensorInfo, first: number): TensorInfo {
  const length = tensor.shape[0] ?? 0;
  const step = { first, every: 2, elementBytes: tensor.byteLength / length };
  return { ...tensor, name: `${tensor.name}[${first}::2]`, shape: [length / 2], step };
}

/** Tensors that repeat what the configuration says: old checkpoints store rotary frequencies, tied ones a second head. */
function isDerived(name: string): boolean {
  return (
    name.endsWith(".rotary_emb.inv_freq") ||
    name === "embeddings.position_ids" ||
    name === "lm_head.weight" ||
    name === "rope_freqs.weight"
  );
}

function shapeText(shape: readonly number[]): string {
  return `[${shape.join(", ")}]`;
}
