/**
 * The compute interface. A model is compiled once into a flat program over packed weights; a step is then
 * one asynchronous `execute(program, cache, plan)`. TypeScript validates, native code trusts.
 *
 * Numerics, on which "same tokens under any schedule" rests: every op computes a row from that row alone, in one
 * reduction order that depends neither on how many rows the step has nor on the number of threads; attention
 * walks the context in chunks whose borders are fixed absolute positions.
 */
import type { Adapter, KvCache, MappedFile, Matrix, Program, SamplerState, Vector } from "./handles.js";
import type { AdapterSite, ProgramSpec } from "./ops.js";
import type { SamplerStateSpec, StepPlan, StepResult } from "./step.js";
import type { MatrixOptions, MatrixSource, PackedForm, VectorSource } from "./weights.js";

export type * from "./handles.js";
export type * from "./ops.js";
export type * from "./step.js";
export type * from "./weights.js";

/**
 * Storage of keys and values. `int8` keeps signed bytes and an f32 scale per token and head, beside them in the block:
 * value = scale * byte, scale = largest magnitude / 127. Where the machine multiplies bf16 in pairs, attention over `bf16` and
 * `int8` rounds queries and softmax numerators to bf16; it sums in f32 everywhere.
 */
export type KvDtype = "f32" | "f16" | "bf16" | "int8";

/** What a layer of the cache keeps of a token: this many keys of this size, and as many values. */
export interface KvLayerShape {
  readonly numKvHeads: number;
  readonly headDim: number;
  /** Values are parts of the keys, which are kept once (latent attention). */
  readonly isLatent?: true;
}

export interface KvCacheSpec {
  readonly layers: readonly KvLayerShape[];
  readonly numBlocks: number;
  readonly blockSize: number;
  readonly dtype: KvDtype;
  /** Absent where the program has no recurrent ops. */
  readonly states?: StateSpec;
}

/** Slots of recurrent state, f32. A slot holds what all of a program's recurrent ops keep of one sequence. */
export interface StateSpec {
  readonly numSlots: number;
  /** Tokens behind a slot's own that a step may compute and a later one take back. */
  readonly maxDraftTokens: number;
  /** Floats that each recurrent op keeps, as `stateWidths` gives them for as many draft tokens. */
  readonly widths: readonly number[];
}

export interface BackendInfo {
  readonly name: string;
  /** e.g. "avx512" */
  readonly instructionSet: string;
  readonly features: readonly string[];
  /** Why kinds of work run on other kernels than those of the best instruction set. */
  readonly kernelReasons?: readonly string[];
  readonly numThreads: number;
  /** Weights and cache lie in memory of a device of its own, which does not say how much it has. */
  readonly hasOwnMemory?: boolean;
}

/** Packed weights as bytes, of a backend that can use those of an earlier process. */
export interface PackedWeights {
  /** Names how packed bytes are laid out; those of another layout mean something else. */
  readonly layout: string;
  /** The packed bytes, not to be changed; undefined for a matrix that is more than its bytes (`columnOrder`) or is read in place. */
  bytesOf(matrix: Matrix): Uint8Array | undefined;
  /** Detects damaged bytes, at the speed of memory; no defence against forgery. The matrix must have packed bytes. */
  checksumOf(matrix: Matrix): Promise<string>;
  /**
   * A matrix over packed bytes in a file, shared with every process that maps them; undefined when their checksum differs.
   * Without a checksum the bytes are trusted and only read into memory, which takes half as long.
   * Rejects with `artifact_invalid` when the file is too short. `offset` is a multiple of 4096.
   */
  map(form: PackedForm, file: MappedFile, offset: number, checksum?: string): Promise<Matrix | undefined>;
}

/** Programs and caches whose memory is given back for a while. Their handles stay, and so do adapters of a program. */
export interface Vacating {
  /** Frees a program's memory, or a cache's with its content; until it is refilled, any use throws. Weights are freed with their own handles. */
  vacate(handle: Program | KvCache): void;
  /** Compiles the same ops, over other weights of the same shapes, into a vacated program. */
  refillProgram(program: Program, spec: ProgramSpec): void;
  /** A vacated cache comes back empty. Throws `out_of_memory`, which leaves it vacated. */
  refillCache(cache: KvCache): void;
}

/**
 * A device that may be lost: a step then rejects with `device_lost`, and what lay on the device is gone. Vacate its programs and caches,
 * free its matrices, renew, then make all of them anew.
 */
export interface Renewal extends Vacating {
  /** Opens the device again. Resolves to its name; rejects with `device_lost` when it does not come back in time. */
  renew(): Promise<string>;
}

export interface Backend extends Disposable {
  readonly info: BackendInfo;
  /** Absent where a backend cannot. */
  readonly vacating?: Vacating;
  /** Absent where there is no device to lose, or no way to open it again. */
  readonly renewal?: Renewal;
  /** Whether steps may give rows in place of tokens, which then may see tokens behind themselves; absent where they may not. */
  readonly takesGiven?: true;
  /** Whether steps may want the times of ops; absent where they may not. */
  readonly timesOps?: true;
  /** Absent where packing is all there is. */
  readonly packedWeights?: PackedWeights;
  mapFile(path: string): MappedFile;
  /** Repacks the sources, stacked along rows (they share a type and `cols`), in parallel. Rejects non-finite weights with `artifact_invalid`. */
  createMatrix(sources: readonly MatrixSource[], options?: MatrixOptions): Promise<Matrix>;
  /**
   * Packs matrices that were made with `packLater`, in order, for about this long; queued like a step. Resolves to how many of them,
   * counted from the first, are packed. No product changes. Rejects with `out_of_memory`, which leaves the matrices as they were.
   * Absent where a backend never defers packing.
   */
  packMore?(matrices: readonly Matrix[], milliseconds: number): Promise<number>;
  createVector(sources: readonly VectorSource[]): Vector;
  createKvCache(spec: KvCacheSpec): KvCache;
  createSamplerState(spec: SamplerStateSpec): SamplerState;
  compile(spec: ProgramSpec): Program;
  /**
   * Present where a program may run in parts: a backend for each, with threads, weights and caches of its own. What the other methods
   * make belongs to the first.
   */
  readonly ranks?: readonly Backend[];
  /** One program of the parts that `ranks` were given in order. Caches of the whole model's shape are cut by heads. */
  compileRanks?(specs: readonly ProgramSpec[]): Program;
  /**
   * Makes an adapter of packed matrices, which stay the caller's to dispose. Absent where a backend cannot. Throws
   * `artifact_invalid` when a shape does not fit the program's linears.
   */
  createAdapter?(program: Program, sites: readonly AdapterSite[]): Adapter;
  /**
   * Resolves once everything made so far has its memory; rejects with `out_of_memory`. Absent where whatever makes something says so
   * itself.
   */
  settled?(): Promise<void>;
  /** Compiles all that steps of the program on the cache may run, so that none waits for it. Absent where nothing is left to compile. */
  prepare?(
    program: Program,
    cache: KvCache,
    onProgress?: (done: number, total: number) => void,
  ): Promise<void>;
  /** Runs one step on the backend's own threads. Steps run one at a time in call order. */
  execute(program: Program, cache: KvCache, plan: StepPlan): Promise<StepResult>;
}
