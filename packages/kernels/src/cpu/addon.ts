import type { KernelKind, KernelPath, ProbedPath } from "./kernel-paths.js";

declare const kind: unique symbol;
/** A native object as the addon hands it out; only the addon can look inside. */
export interface NativeObject<Kind extends string> {
  readonly [kind]: Kind;
}

export interface NativeBytes {
  readonly file?: NativeObject<"mapped-file">;
  readonly offset?: number;
  readonly byteLength?: number;
  readonly data?: Uint8Array;
}

/** Enumerators travel as their index in `enumerations`. */
interface NativeMatrixSource {
  readonly type: number;
  readonly rows: number;
  readonly cols: number;
  readonly groupSize: number;
  readonly name: string;
  readonly bytes: NativeBytes;
  readonly scales: NativeBytes | undefined;
  readonly zeros: NativeBytes | undefined;
  readonly columnOrder: Int32Array | undefined;
  readonly table: Float32Array | undefined;
  /** 0 when every row has its own. */
  readonly scaleRows: number;
}

interface NativeVectorSource {
  readonly type: number;
  readonly length: number;
  readonly name: string;
  readonly bytes: NativeBytes;
}

interface NativeAdapterSite {
  readonly site: number;
  readonly down: NativeObject<"matrix">;
  readonly parts: readonly {
    readonly column: number;
    readonly up: NativeObject<"matrix">;
    readonly scale: number;
  }[];
}

/** The adapters of a step, and for each sequence the index of its own, or -1. */
export interface NativeStepAdapters {
  readonly handles: readonly NativeObject<"adapter">[];
  readonly ofSequence: Int32Array;
}

/** Output rows as `encodeOutputs` packs them. */
export interface NativeOutputs {
  readonly count: number;
  readonly integers: Int32Array;
  readonly reals: Float32Array;
  readonly seeds: BigUint64Array;
  readonly states: readonly NativeObject<"sampler-state">[];
  readonly masks: readonly Uint32Array[];
  readonly logprobIds: Int32Array;
}

/** Flat arrays over all rows, in row order; absent where no row has such a part. */
export interface NativeStepResult {
  readonly computeMs: number;
  readonly sent?: Float32Array;
  readonly exchangedBytes: number;
  readonly exchangeMs: number;
  readonly tokens: Int32Array;
  readonly errors?: Uint8Array;
  readonly logprobs?: Float32Array;
  readonly ranks?: Int32Array;
  readonly topTokens?: Int32Array;
  readonly topLogprobs?: Float32Array;
  readonly idLogprobs?: Float32Array;
  readonly hidden?: Float32Array;
  readonly logits?: Float32Array;
  readonly digests?: BigUint64Array;
  /** By `OpKind`; absent unless the plan wanted them. */
  readonly opCounts?: Int32Array;
  readonly opMs?: Float64Array;
}

type Release<Kind extends string> = (object: NativeObject<Kind>) => void;

/**
 * What `native/binding` exports. It trusts its arguments: everything is checked before. Any change to it, or to the arrays
 * and objects that travel, raises the version in both languages.
 */
export interface NativeAddon {
  readonly interfaceVersion: number;
  readonly enumerations: Readonly<Record<string, readonly string[]>>;
  readonly instructionSet: { readonly name: string; readonly bf16: boolean };
  kernelPaths(): Readonly<Record<KernelKind, KernelPath>>;
  setKernelPath(kind: number, path: number): boolean;
  probeKernels(kind: number): readonly ProbedPath[] | undefined;
  recordFaults(descriptor: number, on: boolean): boolean;
  lockFile(descriptor: number): boolean;
  createBackend(numThreads: number, cores: readonly number[]): NativeObject<"backend">;
  closeBackend(backend: NativeObject<"backend">): void;
  mapFile(path: string): { readonly handle: NativeObject<"mapped-file">; readonly byteLength: number };
  createMatrix(
    backend: NativeObject<"backend">,
    sources: readonly NativeMatrixSource[],
    packing: number,
  ): Promise<{ readonly handle: NativeObject<"matrix">; readonly byteLength: number }>;
  packMore(
    backend: NativeObject<"backend">,
    matrices: readonly NativeObject<"matrix">[],
    milliseconds: number,
  ): Promise<number>;
  readonly packedLayoutVersion: number;
  packedBytes(matrix: NativeObject<"matrix">): Uint8Array | undefined;
  checksumMatrix(backend: NativeObject<"backend">, matrix: NativeObject<"matrix">): Promise<string>;
  mapMatrix(
    backend: NativeObject<"backend">,
    spec: {
      readonly type: number;
      readonly rows: number;
      readonly cols: number;
      readonly groupSize: number;
      readonly hasZeros: boolean;
      readonly file: NativeObject<"mapped-file">;
      readonly offset: number;
      /** Empty: not looked at. */
      readonly checksum: string;
    },
  ): Promise<{ readonly handle: NativeObject<"matrix">; readonly byteLength: number } | undefined>;
  createVector(sources: readonly NativeVectorSource[]): NativeObject<"vector">;
  createKvCache(spec: object): NativeObject<"kv-cache">;
  createSamplerState(spec: object): NativeObject<"sampler-state">;
  createRankGroup(size: number, widest: number): NativeObject<"rank-group">;
  failRankGroup(group: NativeObject<"rank-group">): void;
  resetRankGroup(group: NativeObject<"rank-group">): void;
  compile(
    spec: object,
    group: NativeObject<"rank-group"> | undefined,
    rank: number | undefined,
  ): NativeObject<"program">;
  createAdapter(sites: readonly NativeAdapterSite[]): NativeObject<"adapter">;
  execute(
    backend: NativeObject<"backend">,
    program: NativeObject<"program">,
    cache: NativeObject<"kv-cache">,
    plan: object,
    outputs: NativeOutputs,
    adapters: NativeStepAdapters | undefined,
  ): Promise<NativeStepResult>;
  readonly releaseMappedFile: Release<"mapped-file">;
  readonly releaseMatrix: Release<"matrix">;
  readonly releaseVector: Release<"vector">;
  readonly releaseRankGroup: Release<"rank-group">;
  readonly releaseAdapter: Release<"adapter">;
  readonly releaseProgram: Release<"program">;
  readonly releaseKvCache: Release<"kv-cache">;
  readonly releaseSamplerState: Release<"sampler-state">;
}
