import type { BufferRef, Matrix, Op, Vector } from "@octavo/kernels";
import { OctavoError } from "@octavo/protocol/errors";
import type { Gpu } from "../device/gpu.js";
import type { CacheStorage, MatrixStorage } from "../handles.js";
import {
  activationShader,
  addShader,
  clampShader,
  copyShader,
  gatedActivationShader,
  gateShader,
  gatherShader,
  passShader,
  scaleByShader,
  scaleShader,
  sigmoidGateShader,
  splitShader,
} from "../wgsl/elementwise.js";
import { layerNormShader, rmsNormShader, roundE4m3Shader } from "../wgsl/norms.js";
import { ropeShader } from "../wgsl/rope.js";
import type { Shader } from "../wgsl/shader.js";
import type { Arena, ArenaPlace } from "./arena.js";
import { planAttention } from "./attention-plan.js";
import { type DispatchPlan, overRows, type Phase } from "./dispatch.js";
import { planExperts } from "./experts-plan.js";
import type { FusedLinear, LoweredOp, RmsNorm } from "./lowered-op.js";
import type { RopeTables } from "./rope-table.js";
import { planRecurrence } from "./recurrence-plan.js";
import { planEmbedding, planLinear } from "./linear-plan.js";

/** What lowering reads, for one program on one cache. */
export interface LowerContext {
  readonly gpu: Gpu;
  readonly arena: Arena;
  readonly cache: CacheStorage;
  readonly ropes: RopeTables;
  readonly parts: GPUBuffer;
  readonly partSlots: number;
  readonly matrix: (matrix: Matrix) => MatrixStorage;
  readonly vector: (vector: Vector) => GPUBuffer;
}

/** Turns ops into dispatches in order. */
export class Lowering {
  readonly #context: LowerContext;
  #phase: Phase = "tokens";

  constructor(context: LowerContext) {
    this.#context = context;
  }

  get phase(): Phase {
    return this.#phase;
  }

  lower(op: LoweredOp): DispatchPlan[] {
    const { gpu, arena, cache, matrix, vector } = this.#context;
    switch (op.op) {
      case "embedding":
        return planEmbedding(gpu, matrix(op.weight), arena.of(op.out), op);
      case "rms_norm":
      case "layer_norm":
        return [this.#norm(op)];
      case "linear":
        return this.#linear(op);
      case "rope":
        return [this.#rope(op)];
      case "attention":
        return planAttention(gpu, op, arena, {
          dtype: cache.spec.dtype,
          blockSize: cache.spec.blockSize,
          keys: layerOf(cache.keys, op.layer),
          values: layerOf(cache.values, op.layer),
          sinks: op.sinks === undefined ? gpu.nothing : vector(op.sinks),
          parts: this.#context.parts,
          partSlots: this.#context.partSlots,
          vector,
          ropeTable: (rope) => this.#context.ropes.indexOf(rope),
          nothing: gpu.nothing,
        });
      case "gated_activation":
        return [this.#map(gatedActivationShader(op.activation), op.out, op.in, arena.of(op.out).width)];
      case "activation":
        return [this.#map(activationShader(op.activation), op.on)];
      case "sigmoid_gate":
        return [this.#map(sigmoidGateShader, op.on, op.in)];
      case "gate":
        return [this.#map(gateShader(op.activation), op.on, op.in)];
      case "split": {
        const second = arena.of(op.second);
        const extra = { run: op.run, second: second.at, secondStride: second.stride };
        return [this.#map(splitShader, op.first, op.in, arena.of(op.in).width, extra)];
      }
      case "add":
        return [this.#map(addShader, op.out, op.in)];
      case "scale":
        return [this.#scale(op)];
      case "clamp":
        return [
          this.#map(clampShader, op.on, op.on, undefined, { least: op.least ?? -op.limit, limit: op.limit }),
        ];
      case "round_e4m3":
        return [this.#roundE4m3(op)];
      case "gather":
        return this.#gather(op);
      case "experts":
        return planExperts(op, { gpu, arena, matrix, vector, phase: this.#phase, rowsAt: this.#rowsAt() });
      case "convolution":
      case "gated_delta_rule":
      case "state_space":
        return planRecurrence(op, { gpu, arena, cache, vector });
      case "head_linear":
        return this.#headLinear(op);
      case "exchange":
      case "add_given":
      case "receive":
      case "send":
        throw new OctavoError("internal_error", "A GPU runs whole programs, not a part of one.");
    }
  }

  #rowsAt(): number {
    return this.#phase === "tokens" ? 0 : 1;
  }

  #map(
    shader: Shader,
    to: BufferRef,
    from: BufferRef = to,
    width?: number,
    extra: Readonly<Record<string, number>> = {},
  ): DispatchPlan {
    const { arena } = this.#context;
    return this.#mapPlaces(shader, arena.of(to), arena.of(from), width, extra);
  }

  #mapPlaces(
    shader: Shader,
    to: ArenaPlace,
    from: ArenaPlace,
    width = to.width,
    extra: Readonly<Record<string, number>> = {},
  ): DispatchPlan {
    return {
      shader,
      params: {
        rowsAt: this.#rowsAt(),
        width,
        src: from.at,
        srcStride: from.stride,
        to: to.at,
        toStride: to.stride,
        ...extra,
      },
      buffers: [],
      launch: overRows(shader, width, this.#phase),
    };
  }

  #scale({ on, factor, by }: Extract<Op, { op: "scale" }>): DispatchPlan {
    if (by === undefined) return this.#map(scaleShader, on, on, undefined, { factor });
    const plan = this.#map(scaleByShader, on, on, undefined, { factor });
    return { ...plan, buffers: [this.#context.vector(by)] };
  }

  #norm(op: Extract<Op, { op: "rms_norm" | "layer_norm" }>): DispatchPlan {
    const { arena, vector, gpu } = this.#context;
    const [from, to] = [arena.of(op.in), arena.of(op.out)];
    const residual = op.residual && arena.of(op.residual);
    const isRms = op.op === "rms_norm";
    const group = isRms ? (op.groupSize ?? from.width) : from.width;
    const groups = from.width / group;
    const shader = isRms ? rmsNormShader : layerNormShader;
    const phase = this.#phase;
    const bias = isRms ? undefined : op.bias;
    const biasBuffers = isRms ? [] : [bias === undefined ? gpu.nothing : vector(bias)];
    return {
      shader,
      params: {
        rowsAt: this.#rowsAt(),
        width: group,
        src: from.at,
        srcStride: from.stride,
        to: to.at,
        toStride: to.stride,
        residual: residual?.at ?? 0,
        residualStride: residual?.stride ?? 0,
        hasResidual: residual === undefined ? 0 : 1,
        hasBias: bias === undefined ? 0 : 1,
        isWhole: op.weight.length > group ? 1 : 0,
        eps: op.eps,
        weightOffset: isRms ? (op.weightOffset ?? 0) : 0,
      },
      buffers: [vector(op.weight), ...biasBuffers],
      launch: (counts) => (counts[phase] === 0 ? undefined : { shader, size: [groups, counts[phase], 1] }),
    };
  }

  #linear(op: FusedLinear): DispatchPlan[] {
    const { gpu, arena, matrix, vector } = this.#context;
    const { norm, post, update, stream } = op;
    const settings = (of: RmsNorm) => ({
      weight: vector(of.weight),
      eps: of.eps,
      weightOffset: of.weightOffset ?? 0,
    });
    const [from, to] = [arena.of(op.in), arena.of(op.out)];
    const plans = planLinear(gpu, {
      matrix: matrix(op.weight),
      bias: op.bias && vector(op.bias),
      from,
      to,
      phase: this.#phase,
      rowsAt: this.#rowsAt(),
      accumulates: op.accumulates ?? false,
      norm: norm && settings(norm),
      post: post &&
        update &&
        stream && { ...settings(post), update: arena.of(update), stream: arena.of(stream) },
      activation: op.activation,
    });
    if (op.site === undefined || this.#phase === "outputs") return plans;
    const site = { number: op.site, from, to };
    return plans.map((plan, index) => (index === plans.length - 1 ? { ...plan, site } : plan));
  }

  /** A product for each head, and one dispatch for what all of them pass on. */
  #headLinear({ in: input, weights, out, passed = 0 }: Extract<Op, { op: "head_linear" }>): DispatchPlan[] {
    const { gpu, arena, matrix } = this.#context;
    const [from, to] = [arena.of(input), arena.of(out)];
    const products = weights.flatMap((weight, head) => {
      const { rows, cols } = weight;
      return planLinear(gpu, {
        matrix: matrix(weight),
        from: { ...from, at: from.at + head * (cols + passed), width: cols },
        to: { ...to, at: to.at + head * (rows + passed) + passed, width: rows },
        phase: this.#phase,
        rowsAt: this.#rowsAt(),
      });
    });
    if (passed === 0) return products;
    const extra = { run: passed, fromRun: from.width / weights.length, toRun: to.width / weights.length };
    return [this.#mapPlaces(passShader, to, from, passed * weights.length, extra), ...products];
  }

  #rope({ on, headDim, rope }: Extract<Op, { op: "rope" }>): DispatchPlan {
    const { arena, ropes } = this.#context;
    const place = arena.of(on);
    const pairs = rope.inverseFrequencies.length;
    const total = (place.width / headDim) * pairs;
    return {
      shader: ropeShader,
      params: {
        on: place.at,
        onStride: place.stride,
        headDim,
        pairs,
        total,
        table: ropes.indexOf(rope),
        isNeox: rope.layout === "neox" ? 1 : 0,
      },
      buffers: [],
      launch: overRows(ropeShader, total, "tokens"),
    };
  }

  #roundE4m3(op: Extract<Op, { op: "round_e4m3" }>): DispatchPlan {
    const { arena } = this.#context;
    const [from, to] = [arena.of(op.in), arena.of(op.out)];
    const width = op.groupSize ?? from.width;
    const phase = this.#phase;
    const places = { src: from.at, srcStride: from.stride, to: to.at, toStride: to.stride };
    return {
      shader: roundE4m3Shader,
      params: { rowsAt: this.#rowsAt(), width, total: from.width, ...places },
      buffers: [],
      launch: (counts) =>
        counts[phase] === 0
          ? undefined
          : { shader: roundE4m3Shader, size: [Math.ceil(from.width / width), counts[phase], 1] },
    };
  }

  /** In place, rows would overwrite those that others still read: they go through scratch memory. */
  #gather(op: Extract<Op, { op: "gather" }>): DispatchPlan[] {
    const { arena } = this.#context;
    const [from, to] = [arena.of(op.in), arena.of(op.out)];
    this.#phase = "outputs";
    if (op.in.buffer !== op.out.buffer) return [this.#mapPlaces(gatherShader, to, from)];
    return [
      this.#mapPlaces(gatherShader, arena.scratch, from, from.width),
      this.#mapPlaces(copyShader, to, arena.scratch),
    ];
  }

  /** The hidden rows of a step's outputs, one after another. */
  hiddenRows(hidden: BufferRef): {
    readonly place: ArenaPlace;
    readonly dispatches: readonly DispatchPlan[];
  } {
    const { arena } = this.#context;
    const place = arena.of(hidden);
    if (this.#phase === "outputs") return { place, dispatches: [] };
    this.#phase = "outputs";
    return { place: arena.hidden, dispatches: [this.#mapPlaces(gatherShader, arena.hidden, place)] };
  }
}

function layerOf(layers: readonly GPUBuffer[], index: number): GPUBuffer {
  const layer = layers[index];
  if (layer === undefined) throw new OctavoError("internal_error", `The KV cache has no layer ${index}.`);
  return layer;
}
