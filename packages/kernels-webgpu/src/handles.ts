import type {
  Adapter,
  KvCache,
  KvCacheSpec,
  MappedFile,
  Matrix,
  Program,
  SamplerState,
  Vector,
} from "@octavo/kernels";
import { OctavoError } from "@octavo/protocol/errors";
import type { MatrixForm } from "./wgsl/matrix-forms.js";

/** GPU memory that handles and programs share; freed with the last of them. */
export class Memory {
  readonly buffers: readonly GPUBuffer[];
  #users = 1;

  constructor(buffers: readonly GPUBuffer[]) {
    this.buffers = buffers;
  }

  retain(): void {
    this.#users += 1;
  }

  release(): void {
    this.#users -= 1;
    if (this.#users === 0) for (const buffer of this.buffers) buffer.destroy();
  }
}

/** One owner's hold on something of one backend. */
abstract class Handle<T> implements Disposable {
  readonly #noun: string;
  readonly #owner: object;
  #content: T | undefined;
  #isDisposed = false;

  constructor(noun: string, owner: object, content: T) {
    this.#noun = noun;
    this.#owner = owner;
    this.#content = content;
  }

  /** The content, for the backend that made it. */
  contentFor(owner: object): T {
    if (owner !== this.#owner) throw foreignTo(this.#noun);
    if (this.#content === undefined)
      throw new OctavoError(
        "internal_error",
        `This ${this.#noun} has been ${this.#isDisposed ? "disposed and cannot be used any more" : "vacated and must be refilled first"}.`,
      );
    return this.#content;
  }

  protected abstract free(content: T): void;

  /** Frees the content until `refill`; again is harmless. */
  vacate(): void {
    if (this.#content !== undefined) this.free(this.#content);
    this.#content = undefined;
  }

  refill(content: T): void {
    if (this.#content === undefined && !this.#isDisposed) {
      this.#content = content;
      return;
    }
    this.free(content);
    throw new OctavoError("internal_error", `This ${this.#noun} is not vacated.`);
  }

  /** Again is harmless. */
  [Symbol.dispose](): void {
    this.#isDisposed = true;
    this.vacate();
  }
}

function foreignTo(noun: string): OctavoError {
  return new OctavoError(
    "internal_error",
    `This ${noun} was made by another backend; a backend uses only its own.`,
  );
}

/** A file that ranges are read from. */
export interface OpenFile {
  readonly path: string;
  read(offset: number, byteLength: number): Uint8Array;
  close(): void;
}

export class GpuMappedFile extends Handle<OpenFile> implements MappedFile {
  readonly path: string;
  readonly byteLength: number;

  constructor(owner: object, file: OpenFile, byteLength: number) {
    super("mapped file", owner, file);
    this.path = file.path;
    this.byteLength = byteLength;
  }

  protected override free(file: OpenFile): void {
    file.close();
  }
}

/** Rows of a matrix that lie in one pair of buffers. */
export interface MatrixPart {
  readonly firstRow: number;
  readonly rows: number;
  readonly codes: GPUBuffer;
  readonly scales: GPUBuffer | undefined;
}

export interface MatrixStorage {
  readonly form: MatrixForm;
  readonly rows: number;
  readonly cols: number;
  readonly parts: readonly MatrixPart[];
  readonly memory: Memory;
}

export class GpuMatrix extends Handle<MatrixStorage> implements Matrix {
  readonly rows: number;
  readonly cols: number;
  readonly byteLength: number;

  constructor(owner: object, storage: MatrixStorage) {
    super("matrix", owner, storage);
    this.rows = storage.rows;
    this.cols = storage.cols;
    this.byteLength = storage.memory.buffers.reduce((sum, { size }) => sum + size, 0);
  }

  protected override free({ memory }: MatrixStorage): void {
    memory.release();
  }
}

export class GpuVector extends Handle<Memory> implements Vector {
  readonly length: number;

  constructor(owner: object, memory: Memory, length: number) {
    super("vector", owner, memory);
    this.length = length;
  }

  protected override free(memory: Memory): void {
    memory.release();
  }
}

export interface CacheStorage {
  readonly spec: KvCacheSpec;
  /** One buffer for each layer. */
  readonly keys: readonly GPUBuffer[];
  readonly values: readonly GPUBuffer[];
  /** One buffer for each recurrent op, with all slots. */
  readonly states: readonly GPUBuffer[];
}

export class GpuKvCache extends Handle<CacheStorage> implements KvCache {
  readonly spec: KvCacheSpec;
  readonly numBlocks: number;
  readonly blockSize: number;
  readonly byteLength: number;

  constructor(owner: object, storage: CacheStorage, byteLength: number) {
    super("KV cache", owner, storage);
    this.spec = storage.spec;
    this.numBlocks = storage.spec.numBlocks;
    this.blockSize = storage.spec.blockSize;
    this.byteLength = byteLength;
  }

  protected override free({ keys, values, states }: CacheStorage): void {
    for (const buffer of [...keys, ...values, ...states]) buffer.destroy();
  }
}

export class GpuSamplerState<T> extends Handle<T> implements SamplerState {
  readonly kind = "sampler-state";

  constructor(owner: object, state: T) {
    super("sampler state", owner, state);
  }

  protected override free(): void {}
}

export class GpuProgram<T extends Disposable> extends Handle<T> implements Program {
  readonly kind = "program";

  constructor(owner: object, program: T) {
    super("program", owner, program);
  }

  protected override free(program: T): void {
    program[Symbol.dispose]();
  }
}

export class GpuAdapter<T extends Disposable> extends Handle<T> implements Adapter {
  readonly kind = "adapter";
  readonly program: Program;

  constructor(owner: object, adapter: T, program: Program) {
    super("adapter", owner, adapter);
    this.program = program;
  }

  protected override free(adapter: T): void {
    adapter[Symbol.dispose]();
  }
}

/** Narrows a handle to this backend's kind. */
export function expectHandle<T>(
  handle: unknown,
  kind: abstract new (...args: never[]) => T,
  noun: string,
): T {
  if (handle instanceof kind) return handle;
  throw foreignTo(noun);
}
