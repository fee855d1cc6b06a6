import { OctavoError } from "@octavo/protocol/errors";
import type {
  Adapter,
  KvCache,
  KvCacheSpec,
  MappedFile,
  Matrix,
  Program,
  SamplerState,
  Vector,
} from "../backend.js";
import type { CheckedProgram } from "../checks/program.js";
import type { NativeObject } from "./addon.js";

/** A native object, the backend that made it, and what gives its memory back. */
export interface NativeRef<Kind extends string> {
  readonly owner: object;
  readonly object: NativeObject<Kind>;
  readonly release: (object: NativeObject<Kind>) => void;
}

/** One owner's hold on a native object of one backend. */
export abstract class Handle<Kind extends string> implements Disposable {
  readonly #noun: string;
  #ref: NativeRef<Kind> | undefined;
  #isVacated = false;
  readonly #owner: object;

  constructor(noun: string, ref: NativeRef<Kind>) {
    this.#noun = noun;
    this.#ref = ref;
    this.#owner = ref.owner;
  }

  /** The native object, for the backend that made it. */
  objectFor(owner: object): NativeObject<Kind> {
    if (owner !== this.#owner) throw foreign(this.#noun);
    if (this.#ref === undefined) {
      throw new OctavoError(
        "internal_error",
        this.#isVacated
          ? `This ${this.#noun} is vacated and cannot be used before it is refilled.`
          : `This ${this.#noun} has been disposed and cannot be used any more.`,
      );
    }
    return this.#ref.object;
  }

  /** Gives the memory back as soon as no step or program uses it. Again is harmless. */
  [Symbol.dispose](): void {
    this.#isVacated = false;
    this.#release();
  }

  /** Gives the memory back until `refill`. */
  vacate(): void {
    this.#isVacated ||= this.#ref !== undefined;
    this.#release();
  }

  refill(ref: NativeRef<Kind>): void {
    if (!this.#isVacated) {
      ref.release(ref.object);
      throw new OctavoError("internal_error", `This ${this.#noun} is not vacated, so it cannot be refilled.`);
    }
    this.#isVacated = false;
    this.#ref = ref;
  }

  #release(): void {
    if (this.#ref !== undefined) this.#ref.release(this.#ref.object);
    this.#ref = undefined;
  }
}

export class NativeMappedFile extends Handle<"mapped-file"> implements MappedFile {
  readonly path: string;
  readonly byteLength: number;

  constructor(ref: NativeRef<"mapped-file">, path: string, byteLength: number) {
    super("mapped file", ref);
    this.path = path;
    this.byteLength = byteLength;
  }
}

export class NativeMatrix extends Handle<"matrix"> implements Matrix {
  readonly rows: number;
  readonly cols: number;
  readonly byteLength: number;

  constructor(
    ref: NativeRef<"matrix">,
    shape: { readonly rows: number; readonly cols: number; readonly byteLength: number },
  ) {
    super("matrix", ref);
    this.rows = shape.rows;
    this.cols = shape.cols;
    this.byteLength = shape.byteLength;
  }
}

export class NativeVector extends Handle<"vector"> implements Vector {
  readonly length: number;

  constructor(ref: NativeRef<"vector">, length: number) {
    super("vector", ref);
    this.length = length;
  }
}

export class NativeProgram extends Handle<"program"> implements Program {
  readonly kind = "program";
  readonly checked: CheckedProgram;

  constructor(ref: NativeRef<"program">, checked: CheckedProgram) {
    super("program", ref);
    this.checked = checked;
  }
}

export class NativeAdapter extends Handle<"adapter"> implements Adapter {
  readonly kind = "adapter";
  readonly program: Program;

  constructor(ref: NativeRef<"adapter">, program: Program) {
    super("adapter", ref);
    this.program = program;
  }
}

export class NativeKvCache extends Handle<"kv-cache"> implements KvCache {
  readonly numBlocks: number;
  readonly blockSize: number;
  readonly byteLength: number;
  readonly spec: KvCacheSpec;

  constructor(ref: NativeRef<"kv-cache">, spec: KvCacheSpec, byteLength: number) {
    super("KV cache", ref);
    this.numBlocks = spec.numBlocks;
    this.blockSize = spec.blockSize;
    this.byteLength = byteLength;
    this.spec = spec;
  }
}

export class NativeSamplerState extends Handle<"sampler-state"> implements SamplerState {
  readonly kind = "sampler-state";

  constructor(ref: NativeRef<"sampler-state">) {
    super("sampler state", ref);
  }
}

export function foreign(noun: string): OctavoError {
  return new OctavoError(
    "internal_error",
    `This ${noun} was made by another backend; a backend uses only its own.`,
  );
}
