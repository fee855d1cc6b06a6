import { statSync } from "node:fs";
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
  PackedForm,
  PackedWeights,
  Program,
  ProgramSpec,
  SamplerState,
  SamplerStateSpec,
  StepPlan,
  StepResult,
  TensorBytes,
  Vacating,
  Vector,
  VectorSource,
} from "../backend.js";
import { checkAdapter } from "../checks/adapter.js";
import { checkKvCache } from "../checks/kv-cache.js";
import { checkAlone } from "../checks/rank-ops.js";
import { checkProgram } from "../checks/program.js";
import { checkSamplerState } from "../checks/sampler-state.js";
import { checkMatrixSources, checkVectorSources } from "../checks/sources.js";
import { checkStepPlan } from "../checks/step-plan.js";
import { defaultThreadCount } from "../machine/default-thread-count.js";
import type { NativeAddon, NativeBytes, NativeObject } from "./addon.js";
import { fromNative, loadAddon } from "./load-addon.js";
import { decodeOpTimes, decodeRows } from "./decode-results.js";
import { encodeAdapters } from "./encode-adapters.js";
import { kvDtypeIndex, packingIndex, weightTypeIndex } from "./enumerations.js";
import { OutputEncoder } from "./encode-outputs.js";
import { kernelFeatures, settleKernels } from "./kernel-choice.js";
import type { KernelPath } from "./kernel-paths.js";
import { encodeProgram } from "./encode-program.js";
import {
  foreign,
  NativeAdapter,
  NativeKvCache,
  NativeMappedFile,
  NativeMatrix,
  NativeProgram,
  type NativeRef,
  NativeSamplerState,
  NativeVector,
} from "./handles.js";

export interface CpuBackendOptions {
  /** Threads that compute; default one per physical core that this process may use. */
  readonly numThreads?: number;
  /**
   * Which kernels compute each kind of work: `features` (default), those of the best instruction set; `auto`, those measured to be
   * faster; or paths by kind like `bf16=avx512,ops=avx2`. The first backend of a process decides for all.
   */
  readonly kernels?: string;
}

const mostThreads = 1024;

/**
 * The CPU backend: C++ kernels for the best instruction set of this machine (or the one named by OCTAVO_ISA) on a thread
 * pool of their own. Throws `native_unavailable` when the kernels are not built, `invalid_option` for a bad thread count or kernels
 * that this machine lacks.
 */
export function createCpuBackend(options: CpuBackendOptions = {}): Backend {
  const numThreads = options.numThreads ?? defaultThreadCount();
  checkThreadCount(numThreads);
  const addon = loadAddon();
  const reasons = settleKernels(addon, options.kernels ?? "features", process.env);
  return new CpuBackend(addon, numThreads, reasons);
}

export function checkThreadCount(numThreads: number): void {
  if (Number.isInteger(numThreads) && numThreads >= 1 && numThreads <= mostThreads) return;
  throw new OctavoError(
    "invalid_option",
    `numThreads must be an integer from 1 to ${mostThreads}, not ${numThreads}.`,
    { param: "numThreads" },
  );
}

/** One rank's place: the processors to stay on (none: all), and how its packed weights are told from other ranks'. */
interface RankPlace {
  readonly cores: readonly number[];
  readonly layoutSuffix: string;
}

export class CpuBackend implements Backend {
  readonly info: BackendInfo;
  readonly takesGiven = true;
  readonly timesOps = true;
  readonly packedWeights: PackedWeights;
  readonly vacating: Vacating;
  readonly #addon: NativeAddon;
  readonly #encoder = new OutputEncoder();
  #backend: NativeObject<"backend"> | undefined;

  constructor(
    addon: NativeAddon,
    numThreads: number,
    kernelReasons: readonly string[],
    { cores, layoutSuffix }: RankPlace = { cores: [], layoutSuffix: "" },
  ) {
    this.#addon = addon;
    this.#backend = addon.createBackend(numThreads, cores);
    const { name, bf16 } = addon.instructionSet;
    const best = (bf16 ? "avx512_bf16" : name) as KernelPath;
    this.info = {
      name: "cpu",
      instructionSet: name,
      features: kernelFeatures(addon.kernelPaths(), best),
      kernelReasons,
      numThreads,
    };
    this.packedWeights = {
      layout: `cpu-${addon.packedLayoutVersion}${layoutSuffix}`,
      bytesOf: (matrix) => this.#call(() => addon.packedBytes(this.#matrix(matrix))),
      checksumOf: (matrix) => addon.checksumMatrix(this.#open(), this.#matrix(matrix)),
      map: (form, file, offset, checksum) => this.#mapMatrix(form, file, offset, checksum),
    };
    this.vacating = {
      vacate: (handle) => {
        if (!(handle instanceof NativeProgram) && !(handle instanceof NativeKvCache)) throw foreign("handle");
        handle.vacate();
      },
      refillProgram: (program, spec) => {
        if (!(program instanceof NativeProgram)) throw foreign("program");
        checkProgram(spec);
        program.refill(this.#programRef(spec));
      },
      refillCache: (cache) => {
        if (!(cache instanceof NativeKvCache)) throw foreign("KV cache");
        cache.refill(this.#cacheRef(cache.spec));
      },
    };
  }

  mapFile(path: string): MappedFile {
    this.#open();
    if (statSync(path, { throwIfNoEntry: false }) === undefined) {
      throw new OctavoError("artifact_not_found", `There is no file ${path}.`);
    }
    const { handle, byteLength } = this.#call(() => this.#addon.mapFile(path));
    return new NativeMappedFile(this.#ref(handle, this.#addon.releaseMappedFile), path, byteLength);
  }

  async createMatrix(sources: readonly MatrixSource[], options: MatrixOptions = {}): Promise<Matrix> {
    const backend = this.#open();
    checkMatrixSources(sources);
    const native = sources.map((source) => ({
      type: weightTypeIndex(source.type),
      rows: source.rows,
      cols: source.cols,
      groupSize: source.groupSize ?? 0,
      name: source.name,
      bytes: this.#bytes(source.bytes),
      scales: source.scales && this.#bytes(source.scales),
      zeros: source.zeros && this.#bytes(source.zeros),
      columnOrder: source.columnOrder,
      table: source.table,
      scaleRows: source.scaleRows ?? 0,
    }));
    const rows = sources.reduce((sum, source) => sum + source.rows, 0);
    const cols = sources[0]?.cols ?? 0;
    try {
      const { handle, byteLength } = await this.#addon.createMatrix(
        backend,
        native,
        packingIndex(options.inPlace === true ? "in_place" : options.packLater === true ? "later" : "now"),
      );
      return new NativeMatrix(this.#ref(handle, this.#addon.releaseMatrix), { rows, cols, byteLength });
    } catch (thrown) {
      throw fromNative(thrown);
    }
  }

  async packMore(matrices: readonly Matrix[], milliseconds: number): Promise<number> {
    const backend = this.#open();
    if (!(milliseconds >= 0)) {
      throw new OctavoError("internal_error", `packMore takes a time, not ${milliseconds} ms.`);
    }
    const native = matrices.map((matrix) => this.#matrix(matrix));
    try {
      return await this.#addon.packMore(backend, native, milliseconds);
    } catch (thrown) {
      throw fromNative(thrown);
    }
  }

  async #mapMatrix(
    form: PackedForm,
    file: MappedFile,
    offset: number,
    checksum = "",
  ): Promise<Matrix | undefined> {
    const backend = this.#open();
    if (!(file instanceof NativeMappedFile)) throw foreign("mapped file");
    const { rows, cols, groupSize = 0, hasZeros = false } = form;
    const type = weightTypeIndex(form.type);
    const spec = { type, rows, cols, groupSize, hasZeros, file: file.objectFor(this), offset, checksum };
    try {
      const mapped = await this.#addon.mapMatrix(backend, spec);
      if (mapped === undefined) return undefined;
      const { handle, byteLength } = mapped;
      return new NativeMatrix(this.#ref(handle, this.#addon.releaseMatrix), { rows, cols, byteLength });
    } catch (thrown) {
      throw fromNative(thrown);
    }
  }

  createVector(sources: readonly VectorSource[]): Vector {
    this.#open();
    checkVectorSources(sources);
    const native = sources.map((source) => ({
      type: weightTypeIndex(source.type),
      length: source.length,
      name: source.name,
      bytes: this.#bytes(source.bytes),
    }));
    const handle = this.#call(() => this.#addon.createVector(native));
    const length = sources.reduce((sum, source) => sum + source.length, 0);
    return new NativeVector(this.#ref(handle, this.#addon.releaseVector), length);
  }

  createKvCache(spec: KvCacheSpec): KvCache {
    this.#open();
    const byteLength = checkKvCache(spec);
    return new NativeKvCache(this.#cacheRef(spec), { ...spec }, byteLength);
  }

  createSamplerState(spec: SamplerStateSpec): SamplerState {
    this.#open();
    checkSamplerState(spec);
    const handle = this.#call(() => this.#addon.createSamplerState(spec));
    return new NativeSamplerState(this.#ref(handle, this.#addon.releaseSamplerState));
  }

  compile(spec: ProgramSpec): Program {
    return this.compileRank(spec);
  }

  /** A rank's part of a program; `group` and `rank` are absent where it is all. */
  compileRank(spec: ProgramSpec, group?: NativeObject<"rank-group">, rank?: number): Program {
    this.#open();
    const checked = checkProgram(spec);
    if (group === undefined) checkAlone(spec);
    return new NativeProgram(this.#programRef(spec, group, rank), checked);
  }

  createAdapter(program: Program, sites: readonly AdapterSite[]): Adapter {
    this.#open();
    if (!(program instanceof NativeProgram)) throw foreign("program");
    program.objectFor(this);
    checkAdapter(sites, program.checked.sites);
    const native = sites.map(({ site, down, parts }) => ({
      site,
      down: this.#matrix(down),
      parts: parts.map(({ column, up, scale }) => ({ column, up: this.#matrix(up), scale })),
    }));
    const handle = this.#call(() => this.#addon.createAdapter(native));
    return new NativeAdapter(this.#ref(handle, this.#addon.releaseAdapter), program);
  }

  async execute(program: Program, cache: KvCache, plan: StepPlan): Promise<StepResult> {
    const backend = this.#open();
    if (!(program instanceof NativeProgram)) throw foreign("program");
    if (!(cache instanceof NativeKvCache)) throw foreign("KV cache");
    const nativeProgram = program.objectFor(this);
    const nativeCache = cache.objectFor(this);
    const { checked } = program;
    checkStepPlan(plan, checked, cache.spec);
    const outputs = this.#encoder.encode(plan.outputs, checked.vocabSize, (state) => {
      if (!(state instanceof NativeSamplerState)) throw foreign("sampler state");
      return state.objectFor(this);
    });
    const adapters = encodeAdapters(plan, (adapter) => {
      if (!(adapter instanceof NativeAdapter) || adapter.program !== program) throw foreign("adapter");
      return adapter.objectFor(this);
    });
    try {
      const result = await this.#addon.execute(backend, nativeProgram, nativeCache, plan, outputs, adapters);
      const opTimes = decodeOpTimes(result);
      return {
        rows: decodeRows(plan.outputs, result, checked.vocabSize, checked.hiddenSize),
        computeMs: result.computeMs,
        ...(result.sent !== undefined && { sent: result.sent }),
        ...(result.exchangeMs > 0 && {
          exchanges: [{ bytes: result.exchangedBytes, milliseconds: result.exchangeMs }],
        }),
        ...(opTimes !== undefined && { opTimes }),
      };
    } catch (thrown) {
      throw fromNative(thrown);
    }
  }

  /** Steps and matrices under way still finish; their promises settle. */
  [Symbol.dispose](): void {
    if (this.#backend !== undefined) this.#addon.closeBackend(this.#backend);
    this.#backend = undefined;
  }

  #open(): NativeObject<"backend"> {
    if (this.#backend === undefined) {
      throw new OctavoError("internal_error", "This backend has been disposed and cannot be used any more.");
    }
    return this.#backend;
  }

  #programRef(spec: ProgramSpec, group?: NativeObject<"rank-group">, rank?: number): NativeRef<"program"> {
    const handle = this.#call(() => this.#addon.compile(encodeProgram(spec, this), group, rank));
    return this.#ref(handle, this.#addon.releaseProgram);
  }

  #cacheRef(spec: KvCacheSpec): NativeRef<"kv-cache"> {
    const dtype = kvDtypeIndex(spec.dtype);
    const handle = this.#call(() => this.#addon.createKvCache({ ...spec, dtype }));
    return this.#ref(handle, this.#addon.releaseKvCache);
  }

  #ref<Kind extends string>(
    object: NativeObject<Kind>,
    release: NativeRef<Kind>["release"],
  ): NativeRef<Kind> {
    return { owner: this, object, release };
  }

  #call<T>(native: () => T): T {
    try {
      return native();
    } catch (thrown) {
      throw fromNative(thrown);
    }
  }

  #bytes(bytes: TensorBytes): NativeBytes {
    if ("data" in bytes) return { data: bytes.data };
    if (!(bytes.file instanceof NativeMappedFile)) throw foreign("mapped file");
    return { file: bytes.file.objectFor(this), offset: bytes.offset, byteLength: bytes.byteLength };
  }

  #matrix(matrix: Matrix): NativeObject<"matrix"> {
    if (!(matrix instanceof NativeMatrix)) throw foreign("matrix");
    return matrix.objectFor(this);
  }
}
