import { OctavoError } from "@octavo/protocol/errors";
import type {
  Adapter,
  AdapterSite,
  Backend,
  BackendInfo,
  KvCache,
  KvCacheSpec,
  MappedFile,
  Matrix,
  MatrixOptions,
  MatrixSource,
  Op,
  OutputRow,
  PackedWeights,
  Program,
  ProgramSpec,
  SamplerState,
  SamplerStateSpec,
  StepPlan,
  StepResult,
  Vector,
  VectorSource,
} from "../backend.js";
import { spanOf } from "../checks/span.js";
import { defaultThreadCount } from "../machine/default-thread-count.js";
import { rankCores } from "../machine/rank-cores.js";
import type { NativeAddon, NativeObject } from "./addon.js";
import { checkThreadCount, CpuBackend, type CpuBackendOptions } from "./cpu-backend.js";
import { foreign } from "./handles.js";
import { settleKernels } from "./kernel-choice.js";
import { loadAddon } from "./load-addon.js";

export interface RankedBackendOptions extends CpuBackendOptions {
  readonly numRanks: number;
}

/**
 * The CPU in `numRanks` parts that run a model's program together (tensor parallelism): each has its share of the threads, on processors
 * of its own, and its own weights and keys and values in memory near them. Programs that are not made in parts run on the first.
 * Throws as `createCpuBackend` does.
 */
export function createRankedBackend({ numRanks, kernels, ...options }: RankedBackendOptions): Backend {
  const numThreads = options.numThreads ?? Math.max(defaultThreadCount(), numRanks);
  checkThreadCount(numThreads);
  if (!Number.isInteger(numRanks) || numRanks < 1 || numRanks > numThreads) {
    throw new OctavoError(
      "invalid_option",
      `tensor_parallel_size must be an integer from 1 to the number of threads, ${numThreads}, not ${numRanks}: a rank computes on threads of its own.`,
      { param: "tensor_parallel_size" },
    );
  }
  const addon = loadAddon();
  const reasons = settleKernels(addon, kernels ?? "features", process.env);
  const share = Math.floor(numThreads / numRanks);
  const ranks = rankCores(numRanks, share).map(
    (cores, rank) =>
      new CpuBackend(addon, share, reasons, { cores, layoutSuffix: `-rank${rank}of${numRanks}` }),
  );
  return new RankedBackend(addon, ranks);
}

class RankedProgram implements Program {
  readonly kind = "program";
  readonly parts: readonly Program[];
  readonly group: NativeObject<"rank-group">;
  readonly hasSplitHead: boolean;
  readonly #release: (group: NativeObject<"rank-group">) => void;
  #isDisposed = false;

  constructor(
    parts: readonly Program[],
    hasSplitHead: boolean,
    group: NativeObject<"rank-group">,
    release: (group: NativeObject<"rank-group">) => void,
  ) {
    this.parts = parts;
    this.hasSplitHead = hasSplitHead;
    this.group = group;
    this.#release = release;
  }

  [Symbol.dispose](): void {
    if (this.#isDisposed) return;
    this.#isDisposed = true;
    for (const part of this.parts) part[Symbol.dispose]();
    this.#release(this.group);
  }
}

/** Each rank's heads, where they can be divided, and all of them on the first, for programs that run there alone. Neither takes memory unused. */
class RankedKvCache implements KvCache {
  readonly numBlocks: number;
  readonly blockSize: number;
  readonly byteLength: number;
  readonly parts: readonly KvCache[];
  readonly whole: KvCache;

  constructor(spec: KvCacheSpec, ranks: readonly CpuBackend[], first: CpuBackend) {
    this.numBlocks = spec.numBlocks;
    this.blockSize = spec.blockSize;
    const layers = spec.layers.map((layer) => ({ ...layer, numKvHeads: layer.numKvHeads / ranks.length }));
    this.whole = first.createKvCache(spec);
    this.byteLength = this.whole.byteLength;
    const parts: KvCache[] = [];
    this.parts = parts;
    try {
      if (layers.every(({ numKvHeads }) => Number.isInteger(numKvHeads)))
        for (const rank of ranks) parts.push(rank.createKvCache({ ...spec, layers }));
    } catch (error) {
      this[Symbol.dispose]();
      throw error;
    }
  }

  [Symbol.dispose](): void {
    for (const part of [this.whole, ...this.parts]) part[Symbol.dispose]();
  }
}

class RankedBackend implements Backend {
  readonly ranks: readonly CpuBackend[];
  readonly info: BackendInfo;
  readonly timesOps = true;
  readonly packedWeights: PackedWeights;
  readonly #addon: NativeAddon;
  readonly #first: CpuBackend;
  /** The step of the ranks under way. */
  #running: Promise<unknown> | undefined;

  constructor(addon: NativeAddon, ranks: readonly CpuBackend[]) {
    const [first] = ranks;
    if (first === undefined) throw new OctavoError("internal_error", "A backend needs a rank.");
    this.#addon = addon;
    this.#first = first;
    this.ranks = ranks;
    this.info = { ...first.info, numThreads: first.info.numThreads * ranks.length };
    this.packedWeights = first.packedWeights;
  }

  mapFile(path: string): MappedFile {
    return this.#first.mapFile(path);
  }

  createMatrix(sources: readonly MatrixSource[], options?: MatrixOptions): Promise<Matrix> {
    return this.#first.createMatrix(sources, options);
  }

  packMore(matrices: readonly Matrix[], milliseconds: number): Promise<number> {
    return this.#first.packMore(matrices, milliseconds);
  }

  createVector(sources: readonly VectorSource[]): Vector {
    return this.#first.createVector(sources);
  }

  createKvCache(spec: KvCacheSpec): KvCache {
    return new RankedKvCache(spec, this.ranks, this.#first);
  }

  createSamplerState(spec: SamplerStateSpec): SamplerState {
    return this.#first.createSamplerState(spec);
  }

  compile(spec: ProgramSpec): Program {
    return this.#first.compile(spec);
  }

  compileRanks(specs: readonly ProgramSpec[]): Program {
    if (specs.length !== this.ranks.length) {
      throw new OctavoError(
        "internal_error",
        `A program of ${specs.length} parts was given to ${this.ranks.length} ranks.`,
      );
    }
    const group = this.#addon.createRankGroup(specs.length, Math.max(...specs.map(widestExchange)));
    const parts: Program[] = [];
    try {
      for (const [rank, backend] of this.ranks.entries()) {
        const spec = specs[rank];
        if (spec !== undefined) parts.push(backend.compileRank(spec, group, rank));
      }
    } catch (error) {
      for (const part of parts) part[Symbol.dispose]();
      this.#addon.releaseRankGroup(group);
      throw error;
    }
    const hasSplitHead = specs[0]?.head?.allRows !== undefined;
    return new RankedProgram(parts, hasSplitHead, group, this.#addon.releaseRankGroup);
  }

  createAdapter(program: Program, sites: readonly AdapterSite[]): Adapter {
    return this.#first.createAdapter(program, sites);
  }

  async execute(program: Program, cache: KvCache, plan: StepPlan): Promise<StepResult> {
    if (!(cache instanceof RankedKvCache)) throw foreign("KV cache");
    if (!(program instanceof RankedProgram)) return this.#first.execute(program, cache.whole, plan);
    while (this.#running !== undefined) await this.#running;
    const step = this.#executeRanks(program, cache, plan);
    this.#running = step.catch(() => undefined).finally(() => (this.#running = undefined));
    return step;
  }

  async #executeRanks(
    { parts, group, hasSplitHead }: RankedProgram,
    cache: RankedKvCache,
    plan: StepPlan,
  ): Promise<StepResult> {
    const others = planOfOthers(plan, hasSplitHead);
    const settled = await Promise.allSettled(
      this.ranks.map(async (backend, rank) => {
        const [part, own] = [parts[rank], cache.parts[rank]];
        if (part === undefined || own === undefined) throw foreign("KV cache");
        try {
          return await backend.execute(part, own, rank === 0 ? plan : others);
        } catch (error) {
          // The other ranks wait for this one.
          this.#addon.failRankGroup(group);
          throw error;
        }
      }),
    );
    const failures = settled.flatMap((one) =>
      one.status === "rejected" ? [OctavoError.from(one.reason)] : [],
    );
    if (failures.length > 0) {
      this.#addon.resetRankGroup(group);
      throw failures.find(({ message }) => !message.includes("another rank")) ?? failures[0];
    }
    const results = settled.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
    return {
      rows: results[0]?.rows ?? [],
      ...(results[0]?.sent !== undefined && { sent: results[0].sent }),
      ...(results[0]?.opTimes !== undefined && { opTimes: results[0].opTimes }),
      computeMs: Math.max(...results.map(({ computeMs }) => computeMs)),
      exchanges: results.flatMap(({ exchanges = [] }) => exchanges),
    };
  }

  /** As one backend's. */
  [Symbol.dispose](): void {
    for (const rank of this.ranks) rank[Symbol.dispose]();
  }
}

/** The same step for ranks that sample nothing: rows to compute logits of, where the head is divided. */
function planOfOthers(plan: StepPlan, hasSplitHead: boolean): StepPlan {
  const { wantLogits: _, wantOpTimes: __, adapters: ___, ...rest } = plan;
  return {
    ...rest,
    withoutSent: true,
    outputs: plan.outputs.map((row): OutputRow => {
      if (row.kind === "hidden") return row;
      return hasSplitHead ? { kind: "score", target: 0, numLogprobs: 0 } : { kind: "hidden" };
    }),
  };
}

/** Columns of the widest rows that ranks exchange. */
function widestExchange({ ops, buffers, head }: ProgramSpec): number {
  const width = (op: Op): number => {
    if (op.op === "exchange") return spanOf(op.on, buffers).width;
    return op.op === "experts" && op.isSplit === true ? (op.experts[0]?.down.cols ?? 1) : 1;
  };
  return Math.max(1, head?.allRows ?? 1, ...ops.map(width));
}
