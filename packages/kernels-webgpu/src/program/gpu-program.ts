import type { CheckedProgram } from "@octavo/kernels/checks/program";
import type { Op, OpTime, StepPlan } from "@octavo/kernels";
import { OctavoError } from "@octavo/protocol/errors";
import type { Commands } from "../device/commands.js";
import type { Gpu } from "../device/gpu.js";
import type { CacheStorage, Memory } from "../handles.js";
import { candidatesShader, candidateWords } from "../wgsl/candidates.js";
import { headShader, resultWords } from "../wgsl/head.js";
import { mostRopes, type Shader } from "../wgsl/shader.js";
import type { AdapterBody } from "./adapter.js";
import { Arena } from "./arena.js";
import { bindDispatches, type OpDispatches } from "./bind-dispatches.js";
import { attentionBytes } from "../wgsl/lane-attention.js";
import { partFloats, rowsPerTile } from "./attention-plan.js";
import { type BoundDispatch, type DispatchPlan, type StepCounts, stepsOfAllSizes } from "./dispatch.js";
import { type LowerContext, Lowering } from "./lower.js";
import type { LoweredProgram } from "./lowered-op.js";
import { RopeTables } from "./rope-table.js";
import { planLinear } from "./linear-plan.js";
import { StepWriter } from "./step-buffer.js";

/** Segments that a decode step of one sequence may take apart: 64 Ki positions of 256. */
const mostSplitSegments = 256;

const candidateBytes = 4 * candidateWords;

/** A program's dispatches on one cache. */
interface BoundProgram {
  readonly step: GPUBuffer;
  readonly ops: readonly BoundDispatch[];
  /** Dispatches for each part of the logits. */
  readonly head: readonly (readonly BoundDispatch[])[];
  /** Dispatches for adapters seen so far, by site. */
  readonly adapted: WeakMap<AdapterBody, Map<number, readonly BoundDispatch[]>>;
}

/** What a step leaves to be read. */
export interface EncodedStep {
  readonly staging: GPUBuffer;
  readonly bytes: number;
  readonly readOpTimes?: (() => Promise<readonly OpTime[]>) | undefined;
}

/** Which of a step's adapters each row uses, -1 for none. */
export interface AdaptedRows {
  readonly rows: Int32Array | undefined;
  readonly adapters: readonly AdapterBody[];
}

/** Which rows a step reads back, beside the sampled tokens. */
export interface Readback {
  /** Output rows whose hidden state, or whose logits, are wanted, ascending. */
  readonly hidden: readonly number[];
  readonly logits: readonly number[];
  /** Output rows whose most likely tokens are wanted; none where a step's logits do not exist at a time. */
  readonly candidates: readonly number[];
  /** Whether any row needs the head at all. */
  readonly needsHead: boolean;
}

/** A compiled program: its activations, and its dispatches on each cache that it meets. */
export class GpuProgramBody implements Disposable {
  readonly checked: CheckedProgram;
  readonly arena: Arena;
  readonly #gpu: Gpu;
  readonly #lowered: LoweredProgram;
  readonly #lookups: Pick<LowerContext, "matrix" | "vector">;
  readonly #memories: readonly Memory[];
  readonly #arenaBuffer: GPUBuffer;
  readonly #results: GPUBuffer;
  readonly #candidates: GPUBuffer;
  readonly #ropes: RopeTables;
  readonly #parts: GPUBuffer;
  readonly #partSlots: number;
  readonly #writer: StepWriter;
  readonly #bound = new Map<CacheStorage, BoundProgram>();
  #stepWords = 1 << 14;
  #uniforms: GPUBuffer[] = [];

  constructor(
    gpu: Gpu,
    checked: CheckedProgram,
    lowered: LoweredProgram,
    lookups: Pick<LowerContext, "matrix" | "vector">,
    memories: readonly Memory[],
  ) {
    const { spec } = checked;
    this.#gpu = gpu;
    this.checked = checked;
    this.#lowered = lowered;
    this.#lookups = lookups;
    this.#ropes = new RopeTables(spec.ops.flatMap((op) => (op.op === "rope" ? [op.rope] : [])));
    if (this.#ropes.specs.length > mostRopes)
      throw new OctavoError(
        "artifact_unsupported",
        `The program rotates by ${this.#ropes.specs.length} tables; the WebGPU backend holds ${mostRopes}.`,
      );
    this.arena = new Arena(spec, gpu.mostBytes);
    const attentions = spec.ops.filter((op): op is Extract<Op, { op: "attention" }> => op.op === "attention");
    const { maxComputeWorkgroupStorageSize: shared } = gpu.device.limits;
    const tooWide = attentions.find(({ headDim }) => attentionBytes(headDim) > shared)?.headDim;
    if (tooWide !== undefined)
      throw new OctavoError(
        "artifact_unsupported",
        `The model has heads of ${tooWide} elements, for which attention on a GPU needs ${attentionBytes(tooWide)} bytes of memory shared by a workgroup; this one has ${shared}.`,
      );
    const most = Math.max(0, ...attentions.map(partFloats));
    this.#partSlots = most === 0 ? 0 : Math.min(mostSplitSegments, Math.floor(gpu.mostBytes / (4 * most)));
    this.#memories = memories;
    for (const memory of memories) memory.retain();
    this.#arenaBuffer = gpu.buffer(this.arena.floats * 4, "Activations");
    this.#parts = gpu.buffer(4 * most * this.#partSlots, "Parts of attention");
    this.#results = gpu.buffer(4 * resultWords * spec.maxTokens, "Results");
    const selectable = Math.min(spec.maxTokens, this.arena.logitRows);
    this.#candidates = gpu.buffer(candidateBytes * selectable, "Most likely tokens");
    const tiles = attentions.map((op) => rowsPerTile(gpu, op));
    const tileRows = tiles.length === 0 ? 1 : Math.min(...tiles);
    this.#writer = new StepWriter(this.#ropes.specs, tileRows, this.arena.logitRows, spec.maxTokens);
  }

  /** Compiles every kernel that a step on this cache may launch. */
  async compile(cache: CacheStorage, onProgress?: (done: number, total: number) => void): Promise<void> {
    const { ops, head } = this.#boundTo(cache);
    const shaders = new Map<string, Shader>();
    for (const counts of stepsOfAllSizes(this.checked.spec.maxTokens))
      for (const { launch } of [...ops, ...head.flat()]) {
        const shader = launch(counts)?.shader;
        if (shader !== undefined) shaders.set(shader.key, shader);
      }
    let done = 0;
    onProgress?.(done, shaders.size);
    await Promise.all(
      [...shaders.values()].map(async (shader) => {
        await this.#gpu.compile(shader);
        onProgress?.((done += 1), shaders.size);
      }),
    );
  }

  /** Encodes and submits a step; what it computed is in the staging buffer once that can be read. */
  submit(cache: CacheStorage, plan: StepPlan, adapted: AdaptedRows, readback: Readback): EncodedStep {
    const started = performance.now();
    const { words, counts: written } = this.#writer.write(plan, adapted.rows);
    const counts: StepCounts = { ...written, candidates: readback.candidates.length };
    if (words.length > this.#stepWords) {
      this.#stepWords = 2 ** Math.ceil(Math.log2(words.length));
      this.#unbind();
    }
    const bound = this.#boundTo(cache);
    this.#gpu.upload(bound.step, 0, words);
    const commands = this.#gpu.commands(plan.wantOpTimes === true);
    const { encoder } = commands;
    this.#encode(commands, bound, bound.ops, counts, adapted.adapters);
    const vocabBytes = 4 * this.checked.vocabSize;
    const hiddenBytes = 4 * this.checked.hiddenSize;
    const resultBytes = 4 * resultWords * counts.outputs;
    const candidatesAt =
      resultBytes + readback.hidden.length * hiddenBytes + readback.logits.length * vocabBytes;
    const bytes = candidatesAt + readback.candidates.length * candidateBytes;
    const staging = this.#gpu.takeStaging(bytes);
    let to = resultBytes + readback.hidden.length * hiddenBytes;
    let nextLogits = 0;
    const { logitRows, logits } = this.arena;
    for (let part = 0; readback.needsHead && part * logitRows < counts.outputs; part++) {
      this.#encode(commands, bound, bound.head[part] ?? [], counts, []);
      const end = (part + 1) * logitRows;
      if (!((readback.logits[nextLogits] ?? end) < end)) continue;
      commands.endPass();
      for (; (readback.logits[nextLogits] ?? end) < end; nextLogits++, to += vocabBytes) {
        const row = (readback.logits[nextLogits] ?? 0) - part * logitRows;
        encoder.copyBufferToBuffer(
          this.#arenaBuffer,
          4 * (logits.at + row * logits.stride),
          staging,
          to,
          vocabBytes,
        );
      }
    }
    commands.endPass();
    if (resultBytes > 0) encoder.copyBufferToBuffer(this.#results, 0, staging, 0, resultBytes);
    const hidden = this.#hiddenPlace;
    for (const [index, row] of readback.hidden.entries())
      encoder.copyBufferToBuffer(
        this.#arenaBuffer,
        4 * (hidden.at + row * hidden.stride),
        staging,
        resultBytes + index * hiddenBytes,
        hiddenBytes,
      );
    for (const [index, row] of readback.candidates.entries())
      encoder.copyBufferToBuffer(
        this.#candidates,
        row * candidateBytes,
        staging,
        candidatesAt + index * candidateBytes,
        candidateBytes,
      );
    const readOpTimes = commands.endTimes();
    this.#gpu.submit(commands);
    this.#gpu.counters.encodeMs += performance.now() - started;
    return { staging, bytes, readOpTimes };
  }

  /** Copies rows of logits that the last step left; it had no more rows than exist at a time. */
  submitLogits(rows: readonly number[]): EncodedStep {
    const { logits } = this.arena;
    const rowBytes = 4 * this.checked.vocabSize;
    const staging = this.#gpu.takeStaging(rows.length * rowBytes);
    const commands = this.#gpu.commands();
    for (const [index, row] of rows.entries())
      commands.encoder.copyBufferToBuffer(
        this.#arenaBuffer,
        4 * (logits.at + row * logits.stride),
        staging,
        index * rowBytes,
        rowBytes,
      );
    this.#gpu.submit(commands);
    this.#gpu.counters.wholeRows += rows.length;
    return { staging, bytes: rows.length * rowBytes };
  }

  #hiddenPlace = { at: 0, stride: 0 };

  #encode(
    commands: Commands,
    bound: BoundProgram,
    dispatches: readonly BoundDispatch[],
    counts: StepCounts,
    adapters: readonly AdapterBody[],
  ): void {
    for (const dispatch of dispatches) {
      const launch = dispatch.launch(counts);
      if (launch === undefined) continue;
      const pass = commands.pass(dispatch.op);
      pass.setPipeline(this.#gpu.kernel(launch.shader).pipeline);
      pass.setBindGroup(0, dispatch.group);
      pass.dispatchWorkgroups(...launch.size);
      this.#gpu.counters.dispatches += 1;
      const { site } = dispatch;
      if (site === undefined) continue;
      for (const adapter of adapters)
        this.#encode(commands, bound, this.#adapted(bound, adapter, site), counts, []);
    }
  }

  /** What an adapter adds at a site, bound when it is first used there. */
  #adapted(
    bound: BoundProgram,
    adapter: AdapterBody,
    site: NonNullable<DispatchPlan["site"]>,
  ): readonly BoundDispatch[] {
    let sites = bound.adapted.get(adapter);
    if (sites === undefined) bound.adapted.set(adapter, (sites = new Map()));
    let found = sites.get(site.number);
    if (found === undefined) {
      const plans = adapter.plan(this.#gpu, this.arena, site.number, site.from, site.to);
      found = plans.length === 0 ? [] : this.#bindAll(bound.step, [["adapter", plans]]).flat();
      sites.set(site.number, found);
    }
    return found;
  }

  #boundTo(cache: CacheStorage): BoundProgram {
    let bound = this.#bound.get(cache);
    if (bound === undefined) {
      bound = this.#bind(cache);
      this.#bound.set(cache, bound);
    }
    return bound;
  }

  /** Forgets a cache that is disposed. */
  forget(cache: CacheStorage): void {
    this.#bound.get(cache)?.step.destroy();
    this.#bound.delete(cache);
  }

  #bind(cache: CacheStorage): BoundProgram {
    const { spec } = this.checked;
    const lowering = new Lowering({
      gpu: this.#gpu,
      arena: this.arena,
      cache,
      ropes: this.#ropes,
      parts: this.#parts,
      partSlots: this.#partSlots,
      ...this.#lookups,
    });
    const ops = this.#lowered.ops.map((op) => [op.op, lowering.lower(op)] as const);
    const { place, dispatches } = lowering.hiddenRows(this.#lowered.hidden);
    this.#hiddenPlace = place;
    const heads: DispatchPlan[][] = [];
    for (let part = 0; part * this.arena.logitRows < spec.maxTokens; part++)
      heads.push(this.#planHead(place, part));
    const step = this.#gpu.buffer(4 * this.#stepWords, "A step's plan");
    const inLayers = [...ops, ["gather", dispatches] as const];
    const bound = this.#bindAll(step, [...inLayers, ...heads.map((plans) => ["head", plans] as const)]);
    return {
      step,
      ops: bound.slice(0, inLayers.length).flat(),
      head: bound.slice(inLayers.length),
      adapted: new WeakMap(),
    };
  }

  /** The output head over one part of the output rows. */
  #planHead(
    hidden: { readonly at: number; readonly stride: number; readonly width: number },
    part: number,
  ): DispatchPlan[] {
    const { head } = this.checked.spec;
    if (head === undefined) return [];
    const { logitRows, logits } = this.arena;
    const firstRow = part * logitRows;
    const rows = ({ outputs }: StepCounts): number => Math.max(0, Math.min(logitRows, outputs - firstRow));
    const rowsAt = this.#writer.headRowsAt + part;
    const { matrix, vector } = this.#lookups;
    const product = planLinear(this.#gpu, {
      matrix: matrix(head.weight),
      bias: head.bias && vector(head.bias),
      from: { ...hidden, at: hidden.at + firstRow * hidden.stride },
      to: logits,
      phase: "outputs",
      rowsAt,
      rows,
    });
    const finish: DispatchPlan = {
      shader: headShader,
      params: {
        rowsAt,
        vocab: head.weight.rows,
        logits: logits.at,
        stride: logits.stride,
        firstRow,
        scale: head.scale ?? 1,
        softCap: head.softCap ?? 0,
      },
      buffers: [this.#results],
      launch: (counts) => ({ shader: headShader, size: [rows(counts), 1, 1] }),
    };
    if (part > 0) return [...product, finish];
    const select: DispatchPlan = {
      shader: candidatesShader,
      params: { vocab: head.weight.rows, logits: logits.at, stride: logits.stride },
      buffers: [this.#candidates],
      launch: (counts) =>
        counts.candidates === 0 ? undefined : { shader: candidatesShader, size: [rows(counts), 1, 1] },
    };
    return [...product, finish, select];
  }

  #bindAll(step: GPUBuffer, ops: readonly OpDispatches[]): BoundDispatch[][] {
    const { uniforms, bound } = bindDispatches(this.#gpu, { step, arena: this.#arenaBuffer }, ops);
    this.#uniforms.push(uniforms);
    return bound;
  }

  #unbind(): void {
    for (const { step } of this.#bound.values()) step.destroy();
    for (const uniforms of this.#uniforms) uniforms.destroy();
    this.#uniforms = [];
    this.#bound.clear();
  }

  [Symbol.dispose](): void {
    this.#unbind();
    for (const buffer of [this.#arenaBuffer, this.#parts, this.#results, this.#candidates]) buffer.destroy();
    for (const memory of this.#memories) memory.release();
  }
}
