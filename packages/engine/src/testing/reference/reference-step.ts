import type { BufferRef, ExpertWeights, Op, ProgramSpec, RowResult, StepPlan } from "@octavo/kernels";
import {
  activateGated,
  layerNorm,
  rmsNorm,
  rope,
  roundE4m3,
  routeToExperts,
} from "@octavo/kernels/testing/reference-ops";
import { OctavoError } from "@octavo/protocol/errors";
import {
  ReferenceAdapter,
  type ReferenceKvCache,
  ReferenceMatrix,
  ReferenceVector,
} from "./reference-handles.js";

/** An activation buffer: `rows` of `width` f32 columns. */
interface Buffer {
  readonly width: number;
  readonly data: Float32Array;
}

/** Runs a program op by op over one step, as specified in the docstrings of `Op`. */
export function runReferenceStep(spec: ProgramSpec, cache: ReferenceKvCache, plan: StepPlan): RowResult[] {
  const step = new ReferenceStep(spec, cache, plan);
  for (const op of spec.ops) step.run(op);
  return step.outputs();
}

class ReferenceStep {
  readonly #spec: ProgramSpec;
  readonly #cache: ReferenceKvCache;
  /** Of the plan's added values, those that ops before have added. */
  #numAdded = 0;
  readonly #plan: StepPlan;
  readonly #buffers: readonly Buffer[];
  #numRows: number;

  constructor(spec: ProgramSpec, cache: ReferenceKvCache, plan: StepPlan) {
    this.#spec = spec;
    this.#cache = cache;
    this.#plan = plan;
    this.#numRows = plan.numTokens;
    this.#buffers = spec.buffers.map((width) => ({ width, data: new Float32Array(width * plan.numTokens) }));
  }

  run(op: Op): void {
    switch (op.op) {
      case "embedding":
        return this.#embedding(op);
      case "rms_norm":
        return this.#eachRow((row) => this.#rmsNorm(op, row));
      case "layer_norm":
        return this.#eachRow((row) => this.#layerNorm(op, row));
      case "linear":
        return this.#eachRow((row) => {
          multiply(matrixOf(op.weight), this.#row(op.in, row), this.#row(op.out, row));
          if (op.bias !== undefined) addInto(this.#row(op.out, row), vectorOf(op.bias));
          this.#adapt(op, row);
        });
      case "head_linear":
        return this.#eachRow((row) => this.#headLinear(op, row));
      case "rope":
        return this.#eachRow((row) => {
          const heads = this.#row(op.on, row);
          const places = this.#plan.axes?.subarray(3 * row, 3 * row + 3);
          const { axes, ...spec } = op.rope;
          if (places === undefined || axes === undefined)
            return heads.set(rope(heads, op.headDim, this.#plan.positions[row] ?? 0, op.rope));
          for (const [axis, place] of places.entries()) {
            const inverseFrequencies = spec.inverseFrequencies.map((each, pair) =>
              axes[pair] === axis ? each : 0,
            );
            heads.set(rope(heads, op.headDim, place, { ...spec, inverseFrequencies }));
          }
        });
      case "add_given":
        return this.#addGiven(op);
      case "attention":
        return this.#attention(op);
      case "gated_activation":
        return this.#eachRow((row) => {
          const input = this.#row(op.in, row);
          const half = input.length / 2;
          this.#row(op.out, row).set(
            Array.from({ length: half }, (_, i) =>
              activateGated(op.activation, input[i] ?? 0, input[half + i] ?? 0),
            ),
          );
        });
      case "activation":
        return this.#eachRow((row) => {
          const values = this.#row(op.on, row);
          values.set(values.map((value) => activateGated(op.activation, value, 1)));
        });
      case "experts":
        return this.#eachRow((row) => this.#experts(op, row));
      case "sigmoid_gate":
        return this.#eachRow((row) => {
          const values = this.#row(op.on, row);
          const factor = 1 / (1 + Math.exp(-(this.#row(op.in, row)[0] ?? 0)));
          values.set(values.map((value) => value * factor));
        });
      case "gate":
        return this.#eachRow((row) => {
          const gate = this.#row(op.in, row);
          const values = this.#row(op.on, row);
          values.set(values.map((value, i) => activateGated(op.activation, gate[i] ?? 0, value)));
        });
      case "split":
        return this.#eachRow((row) => {
          for (const [i, value] of this.#row(op.in, row).entries()) {
            const run = Math.floor(i / op.run);
            const to = this.#row(run % 2 === 0 ? op.first : op.second, row);
            to[Math.floor(run / 2) * op.run + (i % op.run)] = value;
          }
        });
      case "convolution":
      case "gated_delta_rule":
      case "state_space":
        return this.#cache.states.run(op, this.#plan, (ref, row) => this.#row(ref, row), vectorOf);
      case "add":
        return this.#eachRow((row) => addInto(this.#row(op.out, row), this.#row(op.in, row)));
      case "scale":
        return this.#eachRow((row) => {
          const values = this.#row(op.on, row);
          const factor = op.by === undefined ? op.factor : op.factor * (vectorOf(op.by)[0] ?? 1);
          values.set(values.map((value) => value * factor));
        });
      case "round_e4m3":
        return this.#eachRow((row) => {
          const input = this.#row(op.in, row);
          this.#row(op.out, row).set(roundE4m3(input, op.groupSize ?? input.length));
        });
      case "clamp":
        return this.#eachRow((row) => {
          const values = this.#row(op.on, row);
          values.set(values.map((value) => Math.max(op.least ?? -op.limit, Math.min(op.limit, value))));
        });
      case "exchange":
      case "receive":
      case "send":
        throw new OctavoError("internal_error", "The reference runs whole programs, not a rank's part.");
      case "gather": {
        const kept = this.#plan.outputs.map((output, index) => {
          const token = this.#plan.outputTokens[index] ?? 0;
          const { kind, tokens = 1 } = (output.kind === "hidden" ? output.pool : undefined) ?? {};
          const rows = Array.from({ length: tokens }, (_, i) => this.#row(op.in, token - tokens + 1 + i));
          return rows[0]!.map((_, column) => {
            const values = rows.map((row) => row[column] ?? 0);
            return kind === "max" ? Math.max(...values) : values.reduce((sum, value) => sum + value) / tokens;
          });
        });
        this.#numRows = kept.length;
        return kept.forEach((values, row) => this.#row(op.out, row).set(values));
      }
    }
  }

  outputs(): RowResult[] {
    const { head, hidden } = this.#spec;
    let before = -1;
    return this.#plan.outputs.map((output, row) => {
      const isMet = before === this.#plan.tokenIds[this.#plan.outputTokens[row] ?? 0];
      before = -1;
      if (output.kind === "sample" && output.afterDraft === true && !isMet) return { token: -1 };
      const state = this.#row(hidden, row);
      if (output.kind === "hidden") return { token: -1, hidden: state.slice() };
      if (head === undefined) throw new OctavoError("internal_error", "The program has no output head.");
      const logits = new Float32Array(head.weight.rows);
      multiply(matrixOf(head.weight), state, logits);
      const { scale = 1, softCap } = head;
      for (const [id, logit] of logits.entries()) {
        logits[id] = softCap === undefined ? logit * scale : softCap * Math.tanh((logit * scale) / softCap);
      }
      const token =
        output.kind === "score" ? output.target : logits.indexOf(logits.reduce((a, b) => Math.max(a, b)));
      before = token;
      return this.#plan.wantLogits === true ? { token, logits } : { token };
    });
  }

  #eachRow(work: (row: number) => void): void {
    for (let row = 0; row < this.#numRows; row++) work(row);
  }

  #row(ref: BufferRef, row: number): Float32Array {
    const buffer = this.#buffers[ref.buffer];
    if (buffer === undefined)
      throw new OctavoError("internal_error", `The program has no buffer ${ref.buffer}.`);
    const start = row * buffer.width + (ref.column ?? 0);
    return buffer.data.subarray(start, start + (ref.width ?? buffer.width - (ref.column ?? 0)));
  }

  #addGiven({ on }: Extract<Op, { op: "add_given" }>): void {
    const { tokens, added = new Float32Array(0) } = this.#plan.given ?? { tokens: [] };
    for (const token of tokens) {
      const row = this.#row(on, token);
      addInto(row, added.subarray(this.#numAdded, this.#numAdded + row.length));
      this.#numAdded += row.length;
    }
  }

  #embedding(op: Extract<Op, { op: "embedding" }>): void {
    const { values, cols } = matrixOf(op.weight);
    this.#eachRow((row) => {
      const { tokenIds, positions, tokenTypes } = this.#plan;
      const index = { token: tokenIds[row], position: positions[row], type: tokenTypes?.[row] };
      const at = (index[op.of ?? "token"] ?? 0) + (op.offset ?? 0);
      const embedded = values.subarray(at * cols, (at + 1) * cols);
      this.#row(op.out, row).set(embedded.map((value) => value * (op.scale ?? 1)));
    });
    const { given } = this.#plan;
    if (op.takesGiven !== true || given === undefined) return;
    for (const [index, token] of given.tokens.entries())
      this.#row(op.out, token).set(given.rows.subarray(index * cols, (index + 1) * cols));
  }

  #rmsNorm(op: Extract<Op, { op: "rms_norm" }>, row: number): void {
    this.#row(op.out, row).set(rmsNorm(this.#normInput(op, row), vectorOf(op.weight), op));
  }

  #layerNorm(op: Extract<Op, { op: "layer_norm" }>, row: number): void {
    const bias = op.bias && vectorOf(op.bias);
    const normed = layerNorm(this.#normInput(op, row), vectorOf(op.weight), { eps: op.eps, bias });
    this.#row(op.out, row).set(normed);
  }

  #normInput(op: { readonly in: BufferRef; readonly residual?: BufferRef }, row: number): Float32Array {
    const input = this.#row(op.in, row);
    if (op.residual === undefined) return input;
    const sum = this.#row(op.residual, row);
    addInto(sum, input);
    return sum;
  }

  #experts(op: Extract<Op, { op: "experts" }>, row: number): void {
    const scores = Array.from(this.#row(op.scores, row));
    const routed = routeToExperts(scores, op, op.selectionBias && vectorOf(op.selectionBias));
    const input = this.#row(op.in, row);
    const sum = new Float64Array(this.#row(op.out, row).length);
    const scales = op.expertScales && vectorOf(op.expertScales);
    for (const [index, share] of routed) {
      const factor = share * (scales?.[index] ?? 1);
      const weight = op.weighsInput === true ? 1 : factor;
      const expert = op.experts[index];
      if (expert === undefined)
        throw new OctavoError("internal_error", `The mixture has no expert ${index}.`);
      const read = op.weighsInput === true ? input.map((value) => factor * value) : input;
      const output = runExpert(expert, read, op);
      output.forEach((value, column) => (sum[column] = (sum[column] ?? 0) + weight * value));
    }
    this.#row(op.out, row).set(sum);
  }

  #headLinear(op: Extract<Op, { op: "head_linear" }>, row: number): void {
    const { weights, passed = 0 } = op;
    const [input, out] = [this.#row(op.in, row), this.#row(op.out, row)];
    for (const [head, weight] of weights.entries()) {
      const from = input.subarray(head * (weight.cols + passed), (head + 1) * (weight.cols + passed));
      const to = out.subarray(head * (weight.rows + passed), (head + 1) * (weight.rows + passed));
      to.set(from.subarray(weight.cols));
      multiply(matrixOf(weight), from.subarray(0, weight.cols), to.subarray(passed));
    }
  }

  /** For linears before `gather`, whose rows are the step's tokens. */
  #adapt(op: Extract<Op, { op: "linear" }>, row: number): void {
    const { adapters, queryStarts } = this.#plan;
    const sequence = adapters?.findIndex((_, index) => row < (queryStarts[index + 1] ?? 0)) ?? -1;
    const adapter = adapters?.[sequence];
    const site = adapter instanceof ReferenceAdapter ? adapter.sites.get(op.site ?? -1) : undefined;
    if (site === undefined) return;
    const low = new Float32Array(site.down.rows);
    multiply(matrixOf(site.down), this.#row(op.in, row), low);
    let rank = 0;
    for (const { column, up, scale } of site.parts) {
      const added = new Float32Array(up.rows);
      multiply(matrixOf(up), low.subarray(rank, rank + up.cols), added);
      rank += up.cols;
      addInto(
        this.#row(op.out, row).subarray(column),
        added.map((value) => value * scale),
      );
    }
  }

  #attention(op: Extract<Op, { op: "attention" }>): void {
    const { headDim, numKvHeads } = op;
    const kvWidth = numKvHeads * headDim;
    const keys = this.#cache.keys[op.layer] ?? new Float32Array();
    const values = this.#cache.values[op.layer] ?? new Float32Array();
    const { k, v } = op;
    this.#eachRow((row) => {
      const slot = this.#plan.slots[row] ?? 0;
      if (k === undefined) return;
      keys.set(this.#row(k, row), slot * kvWidth);
      values.set(this.#row(v ?? k, row), slot * kvWidth);
    });
    for (let sequence = 0; sequence < this.#plan.numSequences; sequence++) {
      const [start = 0, end = 0] = this.#plan.queryStarts.subarray(sequence, sequence + 2);
      for (let row = start; row < end; row++) {
        const own = this.#plan.positions[row] ?? 0;
        const inWindow = op.slidingWindow === undefined ? 0 : Math.max(0, own - op.slidingWindow + 1);
        const first = op.chunk === undefined ? inWindow : own - (own % op.chunk);
        const ahead = Math.min(own + (op.lookAhead ?? 0), (this.#plan.contextLengths[sequence] ?? 0) - 1);
        const last = op.isCausal === true ? ahead : Math.max(ahead, this.#plan.lastSeen?.[row] ?? own);
        const slots = Array.from({ length: last - first + 1 }, (_, i) => this.#slotOf(sequence, first + i));
        for (let head = 0; head < op.numHeads; head++) {
          const kvOffset = Math.floor(head / (op.numHeads / numKvHeads)) * headDim;
          const query = this.#row(op.q, row).subarray(head * headDim, (head + 1) * headDim);
          const offsets = slots.map((slot) => slot * kvWidth + kvOffset);
          const scores = offsets.map((offset) => {
            const score = dot(query, keys, offset) * op.scale;
            return op.softCap === undefined ? score : op.softCap * Math.tanh(score / op.softCap);
          });
          const sink = op.sinks === undefined ? -Infinity : (vectorOf(op.sinks)[head] ?? 0);
          const most = Math.max(sink, ...scores);
          const weights = scores.map((score) => Math.exp(score - most));
          const total = weights.reduce((sum, weight) => sum + weight, Math.exp(sink - most));
          const attended = new Float64Array(headDim);
          for (const [i, weight] of weights.entries()) {
            const offset = offsets[i] ?? 0;
            for (let column = 0; column < headDim; column++) {
              attended[column] = (attended[column] ?? 0) + (weight / total) * (values[offset + column] ?? 0);
            }
          }
          const { valueDim = headDim } = op;
          this.#row(op.out, row).set(attended.subarray(headDim - valueDim), head * valueDim);
        }
      }
    }
  }

  #slotOf(sequence: number, position: number): number {
    const { blockSize } = this.#cache;
    const table = this.#plan.blockTableStarts[sequence] ?? 0;
    const block = this.#plan.blockTables[table + Math.floor(position / blockSize)] ?? 0;
    return block * blockSize + (position % blockSize);
  }
}

function matrixOf(handle: unknown): ReferenceMatrix {
  if (handle instanceof ReferenceMatrix) return handle;
  throw new OctavoError("internal_error", "The matrix belongs to another backend.");
}

function vectorOf(handle: unknown): Float32Array {
  if (handle instanceof ReferenceVector) return handle.values;
  throw new OctavoError("internal_error", "The vector belongs to another backend.");
}

function dot(left: Float32Array, right: Float32Array, offset: number): number {
  let sum = 0;
  for (let i = 0; i < left.length; i++) sum += (left[i] ?? 0) * (right[offset + i] ?? 0);
  return sum;
}

function multiply(matrix: ReferenceMatrix, input: Float32Array, out: Float32Array): void {
  for (let row = 0; row < out.length; row++) out[row] = dot(input, matrix.values, row * matrix.cols);
}

function runExpert(
  expert: ExpertWeights,
  input: Float32Array,
  op: Extract<Op, { op: "experts" }>,
): Float32Array {
  const inner = expert.down.cols;
  const gateUp = new Float32Array(2 * inner);
  for (const [matrix, bias, at] of [
    [expert.gate, expert.gateBias, 0],
    [expert.up, expert.upBias, inner],
  ] as const) {
    if (matrix === undefined) continue;
    const part = gateUp.subarray(at, at + matrix.rows);
    multiply(matrixOf(matrix), input, part);
    if (bias !== undefined) addInto(part, vectorOf(bias));
  }
  const activated = gateUp
    .slice(0, inner)
    .map((gate, i) =>
      activateGated(op.activation, gate, op.isGated === false ? 1 : (gateUp[inner + i] ?? 0)),
    );
  const output = new Float32Array(expert.down.rows);
  multiply(matrixOf(expert.down), activated, output);
  if (expert.downBias !== undefined) addInto(output, vectorOf(expert.downBias));
  return output;
}

function addInto(target: Float32Array, values: Float32Array): void {
  for (let i = 0; i < target.length; i++) target[i] = (target[i] ?? 0) + (values[i] ?? 0);
}
