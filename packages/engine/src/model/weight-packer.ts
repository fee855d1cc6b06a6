import { setTimeout as delay } from "node:timers/promises";
import type {
  Backend,
  MappedFile,
  Matrix,
  MatrixSource,
  PackedForm,
  TensorBytes,
  Vector,
  VectorSource,
} from "@octavo/kernels";
import { OctavoError } from "@octavo/protocol/errors";
import type { WeightCorruptor } from "../faults/corrupt-weights.js";
import type {
  MatrixParts,
  MatrixRecipe,
  StoredTensor,
  TensorInfo,
  VectorStep,
} from "@octavo/artifacts/checkpoint/checkpoint";
import { readTensor, readTensorNow } from "@octavo/artifacts/checkpoint/read-tensor";
import { type FloatType, isFloatType } from "@octavo/artifacts/checkpoint/tensor-storage";
import { convertFloats } from "@octavo/artifacts/program/float-conversion";
import {
  type MatrixPlan,
  type ModelPlan,
  type VectorPlan,
  weightsIn,
} from "@octavo/artifacts/program/model-plan";
import type { KeptMatrix, WeightCache } from "./weight-cache/weight-cache.js";

export interface PackingOptions {
  /** Type that unquantised matrices are converted to; default as stored. */
  readonly dtype?: FloatType | undefined;
  /** Called with the bytes of the checkpoint's matrices packed so far, and in total. */
  readonly onProgress?: ((packedBytes: number, totalBytes: number) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Packed weights of earlier starts; filled if they are missing. */
  readonly cache?: WeightCache | undefined;
  /** Reads bf16 matrices in place from their files, if the backend can; default false. */
  readonly inPlace?: boolean | undefined;
  /**
   * From this many bytes of matrices on, steps read them from their files at first and they are packed between steps, if the
   * backend can; default all are packed at once.
   */
  readonly packLaterFrom?: number | undefined;
  readonly onWarning?: ((message: string) => void) | undefined;
  /** Matrices that are packed already and stay with their owner, which outlives these. */
  readonly shared?: ((plan: MatrixPlan) => Matrix | undefined) | undefined;
  /** Corrupts some of them; not with a cache. */
  readonly corruptor?: WeightCorruptor | undefined;
}

/**
 * Packing one matrix already uses all of the backend's threads. A queue of mapped ones keeps them busy while this thread builds
 * the tokenizer; converted and assembled tensors are held in memory until they are packed, so only two at a time.
 */
const MAPPED_IN_FLIGHT = 32;
const CONVERTED_IN_FLIGHT = 2;

/** For a model that is served: less than this is packed at once quickly enough. */
export const packLaterFromBytes = 64 << 20;
/** Delay before the first slice, so that a waiting request runs first. */
const LATER_MS = 50;
/** Longest slice of packing that a step waits for. */
const SLICE_MS = 100;

type AssembledSource = Omit<MatrixSource, "type" | "rows" | "cols" | "name">;

/** Turns weight plans into handles, each plan once, and owns the handles. */
export class WeightPacker implements Disposable {
  readonly #backend: Backend;
  readonly #options: PackingOptions;
  readonly #files = new Map<string, MappedFile>();
  readonly #matrices = new Map<MatrixPlan, Matrix>();
  readonly #shared = new Map<MatrixPlan, Matrix>();
  readonly #vectors = new Map<VectorPlan, Vector>();
  readonly #forms = new Map<MatrixPlan, PackedForm>();
  #packed: Promise<boolean> = Promise.resolve(true);
  #saving: Promise<void> | undefined;
  #packedBytes = 0;
  #isStopped = false;

  constructor(backend: Backend, options: PackingOptions) {
    this.#backend = backend;
    this.#options = options;
  }

  get byteLength(): number {
    let sum = 0;
    for (const matrix of this.#matrices.values()) sum += matrix.byteLength;
    return sum;
  }

  async pack(plan: ModelPlan): Promise<void> {
    const matrices = new Set<MatrixPlan>();
    for (const weight of weightsIn([plan.ops, plan.head])) {
      if (weight.kind === "vector") this.#packVector(weight);
      else if (!this.#isShared(weight)) matrices.add(weight);
    }
    const plans = [...matrices];
    const total = plans.reduce((sum, one) => sum + sourceBytes(one), 0);
    const { cache, dtype, onProgress, corruptor, packLaterFrom = Infinity } = this.#options;
    corruptor?.checkMatches(plans.flatMap(({ sources }) => sources.map(({ name }) => name)));
    const mapped = await cache?.load(this.#backend, plans, dtype);
    if (mapped === undefined) {
      const packLater = total >= packLaterFrom;
      await this.#packMatrices(plans, total, packLater);
      if (packLater) this.#packed = this.#packRest();
      this.#saving = cache && this.#saveIn(cache, plans);
      return;
    }
    for (const [i, matrix] of mapped.entries()) {
      const mappedPlan = plans[i];
      if (mappedPlan !== undefined) this.#matrices.set(mappedPlan, matrix);
    }
    onProgress?.(total, total);
  }

  /** Resolves once the packed weights are in the cache, or could not be written. */
  get saved(): Promise<void> {
    return this.#saving ?? Promise.resolve();
  }

  /** Resolves once everything is packed, or packing has stopped. */
  get packed(): Promise<void> {
    return this.#packed.then(() => undefined);
  }

  /** Packs no more than what is under way; `saved` resolves soon. */
  stop(): void {
    this.#isStopped = true;
  }

  async #saveIn(cache: WeightCache, plans: readonly MatrixPlan[]): Promise<void> {
    if (await this.#packed) await cache.save(this.#backend, plans, this.#options.dtype, this.#kept(plans));
  }

  /** Packs the rest in slices; resolves with whether everything is packed. A step waits for one slice at most. */
  async #packRest(): Promise<boolean> {
    const rest = [...this.#matrices.values()];
    await delay(LATER_MS);
    try {
      while (rest.length > 0 && !this.#isStopped) {
        const count = await this.#backend.packMore?.(rest, SLICE_MS);
        rest.splice(0, count ?? rest.length);
      }
    } catch (error) {
      if (this.#isStopped) return false;
      const { message } = OctavoError.from(error);
      this.#options.onWarning?.(
        `Not all weights could be packed; the others are read from their files, which is slower: ${message}`,
      );
    }
    return rest.length === 0;
  }

  #kept(plans: readonly MatrixPlan[]): KeptMatrix[] {
    return plans.flatMap((plan) => {
      const form = this.#forms.get(plan);
      const matrix = this.#matrices.get(plan);
      return form === undefined || matrix === undefined ? [] : [{ form, matrix }];
    });
  }

  matrix(plan: MatrixPlan): Matrix {
    return expectPacked(this.#matrices.get(plan) ?? this.#shared.get(plan));
  }

  /** Of another plan with the same sources, to be shared. */
  find({ sources }: MatrixPlan): Matrix | undefined {
    for (const [plan, matrix] of [...this.#matrices, ...this.#shared])
      if (plan.sources.length === sources.length && plan.sources.every((one, at) => one === sources[at]))
        return matrix;
    return undefined;
  }

  vector(plan: VectorPlan): Vector {
    return expectPacked(this.#vectors.get(plan));
  }

  closeFiles(): void {
    for (const file of this.#files.values()) file[Symbol.dispose]();
    this.#files.clear();
  }

  [Symbol.dispose](): void {
    this.stop();
    for (const handle of [...this.#matrices.values(), ...this.#vectors.values()]) handle[Symbol.dispose]();
    this.#matrices.clear();
    this.#shared.clear();
    this.#vectors.clear();
  }

  #isShared(plan: MatrixPlan): boolean {
    const matrix = this.#options.shared?.(plan);
    if (matrix !== undefined) this.#shared.set(plan, matrix);
    return matrix !== undefined;
  }

  #packVector(plan: VectorPlan): void {
    const { length } = plan;
    const ones = {
      type: "f32" as const,
      length,
      bytes: { data: bytesOf(new Float32Array(length).fill(1)) },
      name: "ones",
    };
    const sources =
      plan.sources.length === 0 ? [ones] : plan.sources.map((tensor) => this.#vectorSource(tensor));
    this.#vectors.set(plan, this.#backend.createVector(sources));
  }

  /** Awaits every packing even when one fails, so that no handle is created after disposal. */
  async #packMatrices(plans: readonly MatrixPlan[], total: number, packLater: boolean): Promise<void> {
    const queue = plans.values();
    const failures: unknown[] = [];
    // The cache holds all matrices or none, and cannot hold those read in place.
    const inPlace =
      this.#options.inPlace === true && (this.#options.cache === undefined || plans.every(isBf16));
    const worker = async (): Promise<void> => {
      for (const plan of queue) {
        if (failures.length > 0) return;
        try {
          this.#options.signal?.throwIfAborted();
          const sources = await Promise.all(plan.sources.map((tensor) => this.#matrixSource(tensor)));
          const matrix = await this.#backend.createMatrix(sources, { inPlace, packLater });
          this.#matrices.set(plan, matrix);
          this.#forms.set(plan, formOf(plan, sources));
          this.#packedBytes += sourceBytes(plan);
          this.#options.onProgress?.(this.#packedBytes, total);
        } catch (error) {
          failures.push(error);
        }
      }
    };
    const { dtype, corruptor } = this.#options;
    const copies = dtype !== undefined || corruptor !== undefined || plans.some(isAssembled);
    const inFlight = copies ? CONVERTED_IN_FLIGHT : MAPPED_IN_FLIGHT;
    await Promise.all(Array.from({ length: inFlight }, worker));
    if (this.#options.signal?.aborted === true) {
      throw new OctavoError("request_cancelled", "Loading the model was aborted.", { cause: failures[0] });
    }
    if (failures.length > 0) throw failures[0];
  }

  async #matrixSource(tensor: TensorInfo): Promise<MatrixSource> {
    const [rows = 0, cols = 0] = tensor.shape;
    const { dtype, corruptor } = this.#options;
    const { type, name, recipe } = tensor;
    if (corruptor?.matches(name) === true) return this.#corrupted(tensor, corruptor);
    if (recipe !== undefined) return this.#assembled(tensor, recipe);
    if (dtype === undefined || dtype === type || !isFloatType(type)) {
      return { type, rows, cols, bytes: this.#bytes(tensor), name };
    }
    const data = convertFloats(await readTensor(tensor), type, dtype);
    return { type: dtype, rows, cols, bytes: { data }, name };
  }

  async #corrupted(tensor: TensorInfo, corruptor: WeightCorruptor): Promise<MatrixSource> {
    const [rows = 0, cols = 0] = tensor.shape;
    const { type, name, recipe } = tensor;
    const parts = await recipe?.assemble();
    if (parts?.scales !== undefined) {
      const scales = corruptor.scales(name, parts.scales);
      return { type, rows, cols, name, ...this.#sourceOf({ ...parts, scales }) };
    }
    if (!isFloatType(type)) {
      const message = `Tensor "${name}" is stored as ${type}, whose weights cannot be corrupted: choose others by name, or a model in f32, f16, bf16 or a format with scales of its own.`;
      throw new OctavoError("artifact_unsupported", message, { param: "corrupt_weights" });
    }
    const stored = parts?.values ?? tensor;
    const bytes = stored instanceof Uint8Array ? stored : await readTensor(stored);
    const dtype = this.#options.dtype ?? type;
    return { type: dtype, rows, cols, name, bytes: { data: corruptor.floats(name, bytes, type, dtype) } };
  }

  async #assembled({ type, name, shape }: TensorInfo, recipe: MatrixRecipe): Promise<MatrixSource> {
    const [rows = 0, cols = 0] = shape;
    const parts = await recipe.assemble();
    const { dtype } = this.#options;
    if (dtype === undefined || dtype === type || !isFloatType(type) || !(parts.values instanceof Uint8Array))
      return { type, rows, cols, name, ...this.#sourceOf(parts) };
    return { type: dtype, rows, cols, name, bytes: { data: convertFloats(parts.values, type, dtype) } };
  }

  #sourceOf({ values, scales, zeros, ...rest }: MatrixParts): AssembledSource {
    return {
      ...rest,
      bytes: values instanceof Uint8Array ? { data: values } : this.#bytes(values),
      ...(scales !== undefined && { scales: { data: bytesOf(scales) } }),
      ...(zeros !== undefined && { zeros: { data: bytesOf(zeros) } }),
    };
  }

  #vectorSource(tensor: TensorInfo): VectorSource {
    const { type } = tensor;
    if (!isFloatType(type)) {
      throw new OctavoError(
        "artifact_unsupported",
        `Tensor "${tensor.name}" is stored as ${type}; vectors must be f32, f16 or bf16.`,
      );
    }
    const length = tensor.shape.reduce((product, size) => product * size, 1);
    if (tensor.step === undefined) return { type, length, bytes: this.#bytes(tensor), name: tensor.name };
    return { type, length, bytes: { data: everyNth(readTensorNow(tensor), tensor.step) }, name: tensor.name };
  }

  #bytes(tensor: TensorInfo | StoredTensor): TensorBytes {
    let file = this.#files.get(tensor.path);
    if (file === undefined) {
      file = this.#backend.mapFile(tensor.path);
      this.#files.set(tensor.path, file);
    }
    return { file, offset: tensor.offset, byteLength: tensor.byteLength };
  }
}

/** Elements `first`, `first + every`, ... of a vector. */
function everyNth(bytes: Uint8Array, { first, every, elementBytes }: VectorStep): Uint8Array {
  const count = bytes.byteLength / elementBytes / every;
  const picked = new Uint8Array(count * elementBytes);
  for (let i = 0; i < count; i++) {
    const at = (first + i * every) * elementBytes;
    picked.set(bytes.subarray(at, at + elementBytes), i * elementBytes);
  }
  return picked;
}

function bytesOf(values: Float32Array): Uint8Array {
  return new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
}

function sourceBytes(plan: MatrixPlan): number {
  return plan.sources.reduce((sum, tensor) => sum + tensor.byteLength, 0);
}

function isBf16(plan: MatrixPlan): boolean {
  return plan.sources.every(({ type }) => type === "bf16");
}

function isAssembled(plan: MatrixPlan): boolean {
  return plan.sources.some((tensor) => tensor.recipe !== undefined);
}

function formOf({ rows, cols }: MatrixPlan, sources: readonly MatrixSource[]): PackedForm {
  const [first] = sources;
  if (first === undefined) throw new OctavoError("internal_error", "A matrix has no sources.");
  const hasZeros = sources.some((source) => source.zeros !== undefined);
  return { type: first.type, rows, cols, groupSize: first.groupSize, hasZeros };
}

function expectPacked<T>(handle: T | undefined): T {
  if (handle === undefined)
    throw new OctavoError("internal_error", "A weight was used before it was packed.");
  return handle;
}
