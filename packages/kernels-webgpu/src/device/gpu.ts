import { OctavoError } from "@octavo/protocol/errors";
import { formatBinaryBytes } from "@octavo/protocol/options";
import type { Shader } from "../wgsl/shader.js";
import { matrixUnitOf } from "../wgsl/matrix-linear.js";
import type { MatrixUnit } from "../wgsl/matrix-unit.js";
import { Commands } from "./commands.js";
import { StepTimer } from "./step-timer.js";
import { Timestamps } from "./timestamps.js";
import { isSoftwareAdapter, type MatrixShape, matrixShapesOf } from "./adapter-traits.js";

/** A compiled shader. Kernels whose bindings are alike share bind groups. */
export interface Kernel {
  readonly pipeline: GPUComputePipeline;
  readonly layout: GPUBindGroupLayout;
}

/** WebGPU's flags, which are fixed by its specification; the names are globals in browsers alone. */
const usage = { mapRead: 1, copySrc: 4, copyDst: 8, uniform: 64, storage: 128 } as const;
const mapModeRead = 1;
const computeStage = 4;

/** What the tests count. */
export interface GpuCounters {
  submits: number;
  pipelines: number;
  dispatches: number;
  uploadedBytes: number;
  readBytes: number;
  /** Rows of logits read because the most likely tokens did not decide what was sampled. */
  wholeRows: number;
  encodeMs: number;
  /** From when a step's results were read until the next was submitted: in it, the GPU has nothing to do. */
  gapMs: number;
  /** By the GPU's own clock, where steps are timed. */
  busyMs: number;
}

/** Which optional units of a device kernels may use. */
export interface GpuUses {
  /**
   * Multiplies on subgroup matrices, or as a given unit does: inputs and weights as f16, in every step alike, so that schedules stay
   * invisible. Default: false.
   */
  readonly matrixUnits?: boolean | MatrixUnit;
  /** Sums by subgroups; the bits are the same without. Default: true. */
  readonly subgroups?: boolean;
  /** Counts `busyMs`, where the device has timestamps. Default: false. */
  readonly timesSteps?: boolean;
}

/** A device, its compiled kernels and its memory; several backends may use one. */
export class Gpu implements Disposable {
  readonly device: GPUDevice;
  /** Vendor, architecture and description of the adapter. */
  readonly description: string;
  readonly architecture: string;
  readonly features: readonly string[];
  readonly usesSubgroups: boolean;
  /** Whether the GPU's own clock can be read. */
  readonly hasTimestamps: boolean;
  /** Whether it computes on the CPU. */
  readonly isSoftware: boolean;
  /** Invocations of a subgroup; undefined where the device has none. */
  readonly subgroups: { readonly min: number; readonly max: number } | undefined;
  /** Products that subgroups compute on matrices; none where the device has no such unit. */
  readonly matrixShapes: readonly MatrixShape[];
  /** What multiplies f16 matrices, where that was asked for and the device has it. */
  readonly matrixUnit: MatrixUnit | undefined;
  readonly counters: GpuCounters = {
    submits: 0,
    pipelines: 0,
    dispatches: 0,
    uploadedBytes: 0,
    readBytes: 0,
    wholeRows: 0,
    encodeMs: 0,
    gapMs: 0,
    busyMs: 0,
  };
  /** Bound where a kernel has no use for a binding. */
  readonly nothing: GPUBuffer;
  readonly #kernels = new Map<string, Kernel>();
  readonly #layouts = new Map<string, GPUBindGroupLayout>();
  readonly #staging: GPUBuffer[] = [];
  /** Bytes of all buffers made so far, and of the last one. */
  #madeBytes = 0;
  #lastBytes = 0;
  #timer: StepTimer | undefined;
  #opClock: Timestamps | undefined;
  #readAt: number | undefined;
  #failure: OctavoError | undefined;
  #isClosed = false;

  constructor(
    device: GPUDevice,
    info: GPUAdapterInfo,
    { matrixUnits = false, subgroups = true, timesSteps = false }: GpuUses = {},
  ) {
    this.hasTimestamps = device.features.has("timestamp-query");
    if (timesSteps && this.hasTimestamps) this.#timer = new StepTimer(device);
    this.usesSubgroups = subgroups;
    this.device = device;
    this.description = [info.vendor, info.architecture, info.description]
      .filter((part) => part !== "")
      .join(" ");
    this.architecture = info.architecture === "" ? info.vendor : info.architecture;
    this.features = [...device.features].filter((feature) => shownFeatures.has(feature)).toSorted();
    this.isSoftware = isSoftwareAdapter(info);
    const { subgroupMinSize: min, subgroupMaxSize: max } = info;
    this.subgroups =
      device.features.has("subgroups") && min !== undefined && max !== undefined ? { min, max } : undefined;
    this.matrixShapes = device.features.has(subgroupMatrix) ? matrixShapesOf(info) : [];
    const hasHalf = device.features.has("shader-f16");
    const own = hasHalf ? matrixUnitOf(this.matrixShapes, this.subgroups) : undefined;
    this.matrixUnit = typeof matrixUnits === "object" ? matrixUnits : matrixUnits ? own : undefined;
    this.nothing = this.buffer(16, "nothing");
    device.addEventListener("uncapturederror", ({ error }) => {
      this.#failure ??= isMemoryError(error)
        ? this.#outOfMemory("the KV cache or activations", this.#madeBytes - this.#lastBytes, error.message)
        : new OctavoError("internal_error", `The GPU refused a command: ${error.message}`);
    });
    void device.lost.then(({ reason, message }) => {
      if (this.#isClosed) return;
      this.#failure = new OctavoError("device_lost", `The GPU was lost (${reason}): ${message}`);
    });
  }

  /** Throws what went wrong on the device since it was opened, if anything did. */
  check(): void {
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** Resolves once all work and all errors so far have come back; rejects with the first error. */
  async settled(): Promise<void> {
    await this.device.queue.onSubmittedWorkDone();
    await new Promise<void>((resume) => setTimeout(resume, 0));
    this.check();
  }

  kernel(shader: Shader): Kernel {
    let kernel = this.#kernels.get(shader.key);
    if (kernel === undefined) {
      const { layout, descriptor } = this.#pipeline(shader);
      kernel = { pipeline: this.device.createComputePipeline(descriptor), layout };
      this.#kernels.set(shader.key, kernel);
    }
    return kernel;
  }

  /** Compiles a kernel beside the event loop, unless it is there. Rejects with `internal_error` where the driver refuses it. */
  async compile(shader: Shader): Promise<void> {
    if (this.#kernels.has(shader.key)) return;
    const { layout, descriptor } = this.#pipeline(shader);
    try {
      this.#kernels.set(shader.key, {
        pipeline: await this.device.createComputePipelineAsync(descriptor),
        layout,
      });
    } catch (cause) {
      this.check();
      const { message } = OctavoError.from(cause);
      throw new OctavoError("internal_error", `The GPU's driver did not compile ${shader.key}: ${message}`, {
        cause,
      });
    }
  }

  #pipeline(shader: Shader): { layout: GPUBindGroupLayout; descriptor: GPUComputePipelineDescriptor } {
    this.counters.pipelines += 1;
    const layout = this.layout(shader.bindings);
    const module = this.device.createShaderModule({ code: shader.code(), label: shader.key });
    const descriptor = {
      label: shader.key,
      layout: this.device.createPipelineLayout({ bindGroupLayouts: [layout] }),
      compute: { module, entryPoint: "main" },
    };
    return { layout, descriptor };
  }

  /** Layout of a kernel's bind group; kernels whose bindings are alike share one. */
  layout(bindings: readonly ("read" | "write")[]): GPUBindGroupLayout {
    const key = bindings.join();
    let layout = this.#layouts.get(key);
    if (layout === undefined) {
      const types: GPUBufferBindingType[] = [
        "uniform",
        "read-only-storage",
        "storage",
        ...bindings.map(
          (kind) => (kind === "read" ? "read-only-storage" : "storage") as GPUBufferBindingType,
        ),
      ];
      layout = this.device.createBindGroupLayout({
        entries: types.map((type, binding) => ({ binding, visibility: computeStage, buffer: { type } })),
      });
      this.#layouts.set(key, layout);
    }
    return layout;
  }

  /** Invocations of every subgroup, where all are of one size. */
  get subgroupSize(): number | undefined {
    const { min, max } = this.subgroups ?? { min: 0, max: 1 };
    return this.usesSubgroups && min === max ? min : undefined;
  }

  /** Bytes that one binding may have. */
  get mostBytes(): number {
    const { maxBufferSize, maxStorageBufferBindingSize } = this.device.limits;
    return Math.min(maxBufferSize, maxStorageBufferBindingSize);
  }

  /** Zeroed memory for kernels. Throws `out_of_memory` when it is more than a binding may have. */
  buffer(bytes: number, label: string): GPUBuffer {
    const size = Math.max(16, Math.ceil(bytes / 16) * 16);
    if (size > this.mostBytes) {
      throw new OctavoError(
        "out_of_memory",
        `${label} takes ${formatBinaryBytes(size)}, but this GPU binds at most ${formatBinaryBytes(this.mostBytes)} at a time.`,
      );
    }
    this.#madeBytes += size;
    this.#lastBytes = size;
    return this.device.createBuffer({ size, label, usage: usage.storage | usage.copySrc | usage.copyDst });
  }

  /** Makes buffers, and rejects with `out_of_memory` where the GPU has no memory for them. */
  async allocate<T>(label: string, make: () => T): Promise<T> {
    const before = this.#madeBytes;
    this.device.pushErrorScope("out-of-memory");
    let made: T | OctavoError;
    try {
      made = make();
    } catch (error) {
      made = OctavoError.from(error);
    }
    const failed = await this.device.popErrorScope();
    if (made instanceof OctavoError) throw made;
    if (failed !== null) throw this.#outOfMemory(label, before, failed.message);
    this.check();
    return made;
  }

  /** WebGPU says no more than that it failed; what had fitted before is the best that is known of the GPU's memory. */
  #outOfMemory(what: string, fittedBytes: number, message: string): OctavoError {
    return new OctavoError(
      "out_of_memory",
      `The GPU has no memory left for ${what}, after ${formatBinaryBytes(fittedBytes)} that fitted: ${message} ` +
        "Weights, KV cache and activations must stay within about as much: take a smaller model or quantisation, give the KV cache less " +
        "with --kv-cache-memory, or end other processes that use this GPU.",
    );
  }

  uniform(words: Uint32Array): GPUBuffer {
    const buffer = this.device.createBuffer({ size: words.byteLength, usage: usage.uniform | usage.copyDst });
    this.device.queue.writeBuffer(buffer, 0, words);
    return buffer;
  }

  upload(buffer: GPUBuffer, offset: number, words: Uint32Array | Float32Array): void {
    this.counters.uploadedBytes += words.byteLength;
    this.device.queue.writeBuffer(buffer, offset, words);
  }

  /** For commands that `submit` takes. Throws `native_unavailable` where ops are to be timed and the GPU has no timestamps. */
  commands(timesOps = false): Commands {
    if (timesOps && !this.hasTimestamps)
      throw new OctavoError(
        "native_unavailable",
        `${this.description} has no timestamps (timestamp-query), by which ops are timed.`,
      );
    const encoder = this.device.createCommandEncoder();
    this.#timer?.begin(encoder);
    return new Commands(encoder, timesOps ? (this.#opClock ??= new Timestamps(this.device)) : undefined);
  }

  submit({ encoder }: Commands): void {
    const timed = this.#timer?.end(encoder);
    this.device.queue.submit([encoder.finish()]);
    this.counters.submits += 1;
    if (this.#readAt !== undefined) this.counters.gapMs += performance.now() - this.#readAt;
    this.#readAt = undefined;
    void timed?.().then(
      (milliseconds) => (this.counters.busyMs += milliseconds),
      // A device that is lost is met by whoever reads.
      () => undefined,
    );
  }

  /** A buffer to read from, until it is given back. */
  takeStaging(bytes: number): GPUBuffer {
    const at = this.#staging.findIndex((buffer) => buffer.size >= bytes);
    if (at >= 0) return this.#staging.splice(at, 1)[0] as GPUBuffer;
    const size = 2 ** Math.ceil(Math.log2(Math.max(bytes, 4096)));
    return this.device.createBuffer({
      size: Math.min(size, Math.max(bytes, this.device.limits.maxBufferSize)),
      usage: usage.mapRead | usage.copyDst,
    });
  }

  /** A copy of the first bytes, once all work submitted so far is done. Gives the buffer back. */
  async read(staging: GPUBuffer, bytes: number): Promise<ArrayBuffer> {
    try {
      await staging.mapAsync(mapModeRead, 0, Math.ceil(bytes / 8) * 8);
    } catch (error) {
      this.check();
      throw new OctavoError("device_lost", "The GPU was lost in a step.", { cause: error });
    }
    this.#readAt = performance.now();
    const copy = staging.getMappedRange(0, Math.ceil(bytes / 8) * 8).slice(0, bytes);
    staging.unmap();
    this.counters.readBytes += bytes;
    const keep = this.#staging.length < 4 && staging.size <= 64 << 20 && !this.#isClosed;
    if (keep) this.#staging.push(staging);
    else staging.destroy();
    return copy;
  }

  [Symbol.dispose](): void {
    this.#isClosed = true;
    this.device.destroy();
  }
}

const subgroupMatrix = "chromium-experimental-subgroup-matrix" as GPUFeatureName;

/** Optional features that are asked for where an adapter has them. */
export const wantedFeatures: readonly GPUFeatureName[] = [
  "shader-f16",
  "subgroups",
  "timestamp-query",
  subgroupMatrix,
];
const shownFeatures: ReadonlySet<string> = new Set(wantedFeatures);

function isMemoryError(error: GPUError): boolean {
  return error.constructor.name === "GPUOutOfMemoryError";
}
