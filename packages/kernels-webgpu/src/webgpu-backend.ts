import type {
  Adapter,
  AdapterSite,
  Backend,
  BackendInfo,
  KvCache,
  KvCacheSpec,
  KvLayerShape,
  MappedFile,
  Matrix,
  MatrixSource,
  Program,
  ProgramSpec,
  Renewal,
  RowResult,
  SamplerState,
  SamplerStateSpec,
  StepPlan,
  StepResult,
  Vector,
  VectorSource,
} from "@octavo/kernels";
import { checkAdapter } from "@octavo/kernels/checks/adapter";
import { checkKvCache } from "@octavo/kernels/checks/kv-cache";
import { checkProgram } from "@octavo/kernels/checks/program";
import { checkSamplerState } from "@octavo/kernels/checks/sampler-state";
import { checkMatrixSources, checkVectorSources } from "@octavo/kernels/checks/sources";
import { checkStepPlan } from "@octavo/kernels/checks/step-plan";
import { OctavoError } from "@octavo/protocol/errors";
import { formatBinaryBytes } from "@octavo/protocol/options";
import { openFile } from "./device/open-file.js";
import type { Gpu } from "./device/gpu.js";
import { reopenGpu } from "./device/reopen-gpu.js";
import {
  type CacheStorage,
  expectHandle,
  GpuAdapter,
  GpuKvCache,
  GpuMappedFile,
  GpuMatrix,
  GpuProgram,
  GpuSamplerState,
  GpuVector,
  type MatrixStorage,
  Memory,
} from "./handles.js";
import { AdapterBody } from "./program/adapter.js";
import { fuse } from "./program/fusion.js";
import { type EncodedStep, GpuProgramBody } from "./program/gpu-program.js";
import { rowAdaptersOf } from "./program/step-buffer.js";
import { RowFinisher } from "./sampling/finish-rows.js";
import { TokenHistory } from "./sampling/sampler-state.js";
import { packMatrix } from "./weights/pack-matrix.js";
import { vectorValues } from "./weights/vector-values.js";
import { kvHeadWords } from "./wgsl/kv-cache.js";

export interface WebGpuBackendOptions {
  /** Joins neighbouring ops in one dispatch. Adapters need their linears' own inputs and are refused then. Default: true. */
  readonly fusion?: boolean;
  /** Compiles all kernels when a program is prepared, not each when it first runs. Default: false. */
  readonly compilesAhead?: boolean;
  /** Opens the GPU again when it was lost; without it a lost GPU stays lost. */
  readonly reopen?: (() => Promise<Gpu>) | undefined;
  /** How long a lost GPU may take to come back. Default: 30,000. */
  readonly reopenWithinMs?: number;
}

/** A backend on an opened GPU, which several backends may share. Disposing it leaves the GPU open unless it is owned. */
export function createWebGpuBackend(
  gpu: Gpu,
  options: WebGpuBackendOptions & { readonly ownsGpu?: boolean } = {},
): Backend {
  return new WebGpuBackend(gpu, options);
}

class WebGpuBackend implements Backend {
  readonly info: BackendInfo;
  readonly renewal?: Renewal;
  readonly prepare?: NonNullable<Backend["prepare"]>;
  readonly timesOps?: true;
  readonly #fuses: boolean;
  #gpu: Gpu;
  #ownsGpu: boolean;
  #running = 0;
  /** Settles once a step has its rows whose logits may have to be read after all, which another step would overwrite. */
  #undecided: Promise<void> | undefined;
  #isOpen = true;

  constructor(
    gpu: Gpu,
    {
      fusion: fuses = true,
      ownsGpu = false,
      compilesAhead = false,
      reopen,
      reopenWithinMs = 30_000,
    }: Parameters<typeof createWebGpuBackend>[1] = {},
  ) {
    this.#gpu = gpu;
    this.#fuses = fuses;
    this.#ownsGpu = ownsGpu;
    if (compilesAhead)
      this.prepare = (program, cache, onProgress) =>
        this.#program(program).compile(
          expectHandle(cache, GpuKvCache, "KV cache").contentFor(this),
          onProgress,
        );
    if (gpu.hasTimestamps) this.timesOps = true;
    if (reopen !== undefined) this.renewal = this.#renewal(reopen, reopenWithinMs);
    this.info = {
      name: "webgpu",
      instructionSet: gpu.architecture,
      features: [
        ...gpu.features,
        ...(fuses ? ["fused"] : []),
        ...(gpu.matrixUnit === undefined ? [] : ["f16-products"]),
      ],
      numThreads: 1,
      hasOwnMemory: true,
    };
  }

  mapFile(path: string): MappedFile {
    this.#checkOpen();
    const { file, byteLength } = openFile(path);
    return new GpuMappedFile(this, file, byteLength);
  }

  async createMatrix(sources: readonly MatrixSource[]): Promise<Matrix> {
    this.#checkOpen();
    checkMatrixSources(sources);
    return new GpuMatrix(this, await packMatrix(this.#gpu, this, sources));
  }

  createVector(sources: readonly VectorSource[]): Vector {
    this.#checkOpen();
    checkVectorSources(sources);
    const values = vectorValues(this, sources);
    const buffer = this.#gpu.buffer(values.byteLength, sources[0]?.name ?? "A vector");
    this.#gpu.upload(buffer, 0, values);
    return new GpuVector(this, new Memory([buffer]), values.length);
  }

  createKvCache(spec: KvCacheSpec): KvCache {
    this.#checkOpen();
    const byteLength = checkKvCache(spec);
    return new GpuKvCache(this, this.#cacheStorage(spec, byteLength), byteLength);
  }

  #cacheStorage(spec: KvCacheSpec, byteLength: number): CacheStorage {
    const { mostBytes } = this.#gpu;
    const wordsOf = ({ numKvHeads, headDim }: KvLayerShape): number =>
      spec.numBlocks * spec.blockSize * numKvHeads * kvHeadWords(spec.dtype, headDim);
    const words = Math.max(...spec.layers.map(wordsOf));
    if (4 * words > mostBytes) {
      const most = Math.floor((byteLength * mostBytes) / (4 * words));
      throw new OctavoError(
        "out_of_memory",
        `A layer's keys take ${formatBinaryBytes(4 * words)}, but this GPU binds at most ${formatBinaryBytes(mostBytes)} at a time: ` +
          `a KV cache of ${formatBinaryBytes(most)} fits (--kv-cache-memory).`,
      );
    }
    const layers = (what: string, wordsOfLayer = wordsOf): GPUBuffer[] =>
      spec.layers.map((layer) =>
        this.#gpu.buffer(4 * wordsOfLayer(layer), `A layer's ${what} in the KV cache`),
      );
    return {
      spec: { ...spec },
      keys: layers("keys"),
      values: layers("values", (layer) => (layer.isLatent === true ? 0 : wordsOf(layer))),
      states: (spec.states?.widths ?? []).map((width) =>
        this.#gpu.buffer(4 * width * (spec.states?.numSlots ?? 0), "Recurrent state"),
      ),
    };
  }

  createSamplerState(spec: SamplerStateSpec): SamplerState {
    this.#checkOpen();
    checkSamplerState(spec);
    return new GpuSamplerState(this, new TokenHistory(spec));
  }

  compile(spec: ProgramSpec): Program {
    this.#checkOpen();
    return new GpuProgram(this, this.#compiled(spec));
  }

  #compiled(spec: ProgramSpec): GpuProgramBody {
    const checked = checkProgram(spec);
    const memories = new Set<Memory>();
    const matrices = new Map<Matrix, MatrixStorage>();
    const vectors = new Map<Vector, GPUBuffer>();
    // Handles may be disposed once the program is compiled, but not before.
    for (const weight of weightsOf(spec)) {
      if ("rows" in weight) {
        const storage = this.#matrix(weight);
        matrices.set(weight, storage);
        memories.add(storage.memory);
      } else {
        const memory = expectHandle(weight, GpuVector, "vector").contentFor(this);
        vectors.set(weight, onlyBuffer(memory));
        memories.add(memory);
      }
    }
    const matrix = (handle: Matrix): MatrixStorage => matrices.get(handle) ?? missing();
    const vector = (handle: Vector): GPUBuffer => vectors.get(handle) ?? missing();
    const lowered = this.#fuses ? fuse(spec, matrix) : spec;
    return new GpuProgramBody(this.#gpu, checked, lowered, { matrix, vector }, [...memories]);
  }

  createAdapter(program: Program, sites: readonly AdapterSite[]): Adapter {
    this.#checkOpen();
    const body = this.#program(program);
    checkAdapter(sites, body.checked.sites);
    if (this.#fuses)
      throw new OctavoError(
        "artifact_unsupported",
        "Adapters need a WebGPU backend that was created without fusion.",
      );
    const adapter = new AdapterBody(sites, (matrix) => this.#matrix(matrix));
    return new GpuAdapter(this, adapter, program);
  }

  settled(): Promise<void> {
    return this.#gpu.settled();
  }

  async execute(program: Program, cache: KvCache, plan: StepPlan): Promise<StepResult> {
    this.#checkOpen();
    const body = this.#program(program);
    const storage = expectHandle(cache, GpuKvCache, "KV cache").contentFor(this);
    const { checked } = body;
    checkStepPlan(plan, checked, storage.spec);
    this.#gpu.check();
    const finisher = new RowFinisher(
      plan,
      ({ state }) => (state === undefined ? undefined : this.#history(state)),
      plan.outputs.length <= body.arena.logitRows ? checked.vocabSize : undefined,
    );
    const adapters: AdapterBody[] = [];
    const rowAdapters = rowAdaptersOf(plan, (handle) => {
      const adapter = expectHandle(handle, GpuAdapter<AdapterBody>, "adapter");
      if (adapter.program !== program)
        throw new OctavoError("internal_error", "This adapter was made for another program.");
      const found = adapter.contentFor(this);
      if (!adapters.includes(found)) adapters.push(found);
      return found.number;
    });
    const started = performance.now();
    this.#running += 1;
    try {
      while (this.#undecided !== undefined) await this.#undecided;
      const step = body.submit(storage, plan, { rows: rowAdapters, adapters }, finisher.readback);
      const rows = this.#rows(body, step, finisher);
      if (finisher.readback.candidates.length > 0) {
        const forget = (): void => {
          this.#undecided = undefined;
        };
        this.#undecided = rows.then(forget, forget);
      }
      const found = { rows: await rows, computeMs: performance.now() - started };
      return step.readOpTimes === undefined ? found : { ...found, opTimes: await step.readOpTimes() };
    } finally {
      this.#running -= 1;
      this.#closeWhenIdle();
    }
  }

  /** A step's rows; logits that candidates did not decide are read in a second trip. */
  async #rows(
    body: GpuProgramBody,
    { staging, bytes }: EncodedStep,
    finisher: RowFinisher,
  ): Promise<RowResult[]> {
    const { vocabSize, hiddenSize } = body.checked;
    const data = await this.#gpu.read(staging, bytes);
    this.#gpu.check();
    const rows = finisher.sampleCandidates(data, vocabSize);
    const later = new Map<number, Float32Array>();
    if (rows.length > 0) {
      const copied = body.submitLogits(rows);
      const logits = new Float32Array(await this.#gpu.read(copied.staging, copied.bytes));
      for (const [index, row] of rows.entries())
        later.set(row, logits.subarray(index * vocabSize, (index + 1) * vocabSize));
    }
    return finisher.finish(data, vocabSize, hiddenSize, later);
  }

  #renewal(reopen: () => Promise<Gpu>, withinMs: number): Renewal {
    return {
      vacate: (handle) => {
        if (!(handle instanceof GpuProgram) && !(handle instanceof GpuKvCache))
          throw new OctavoError("internal_error", "Only programs and caches of this backend are vacated.");
        handle.vacate();
      },
      refillProgram: (program, spec) =>
        expectHandle(program, GpuProgram<GpuProgramBody>, "program").refill(this.#compiled(spec)),
      refillCache: (cache) => {
        const handle = expectHandle(cache, GpuKvCache, "KV cache");
        handle.refill(this.#cacheStorage(handle.spec, handle.byteLength));
      },
      renew: async () => {
        this.#checkOpen();
        const gpu = await reopenGpu(reopen, this.#gpu.description, withinMs);
        if (!this.#isOpen) gpu[Symbol.dispose]();
        this.#checkOpen();
        if (this.#ownsGpu) this.#gpu[Symbol.dispose]();
        this.#gpu = gpu;
        this.#ownsGpu = true;
        return gpu.description;
      },
    };
  }

  /** Steps under way still finish. */
  [Symbol.dispose](): void {
    this.#isOpen = false;
    this.#closeWhenIdle();
  }

  #closeWhenIdle(): void {
    if (!this.#isOpen && this.#running === 0 && this.#ownsGpu) this.#gpu[Symbol.dispose]();
  }

  #checkOpen(): void {
    if (!this.#isOpen)
      throw new OctavoError("internal_error", "This backend has been disposed and cannot be used any more.");
  }

  #program(program: Program): GpuProgramBody {
    return expectHandle(program, GpuProgram<GpuProgramBody>, "program").contentFor(this);
  }

  #matrix(matrix: Matrix): MatrixStorage {
    return expectHandle(matrix, GpuMatrix, "matrix").contentFor(this);
  }

  #history(state: SamplerState): TokenHistory {
    return expectHandle(state, GpuSamplerState<TokenHistory>, "sampler state").contentFor(this);
  }
}

/** Every weight of a program, once. */
function weightsOf(spec: ProgramSpec): ReadonlySet<Matrix | Vector> {
  const found = new Set<Matrix | Vector>();
  const visit = (value: unknown): void => {
    if (value instanceof GpuMatrix || value instanceof GpuVector || isForeignWeight(value)) {
      found.add(value as Matrix | Vector);
      return;
    }
    if (Array.isArray(value)) for (const item of value) visit(item);
    else if (typeof value === "object" && value !== null && !ArrayBuffer.isView(value))
      for (const item of Object.values(value)) visit(item);
  };
  visit([spec.ops, spec.head]);
  return found;
}

/** A handle of another backend, which is refused by name. */
function isForeignWeight(value: unknown): boolean {
  return typeof value === "object" && value !== null && Symbol.dispose in value;
}

function onlyBuffer(memory: Memory): GPUBuffer {
  return memory.buffers[0] ?? missing();
}

function missing(): never {
  throw new OctavoError("internal_error", "A weight of the program has no memory.");
}
