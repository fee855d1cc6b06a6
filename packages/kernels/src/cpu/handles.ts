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

/** One owner's hold on a native object of one backend. */
export abstract class Handle<Kind extends string> implements Disposable {
  readonly #noun: string;
  readonly #owner: object;
  readonly #release: (object: NativeObject<Kind>) => void;
  #object: NativeObject<Kind> | undefined;

  constructor(
    noun: string,
    owner: object,
    object: NativeObject<Kind>,
    release: (object: NativeObject<Kind>) => void,
  ) {
    this.#noun = noun;
    this.#owner = owner;
    this.#object = object;
    this.#release = release;
  }

  /** The native object, for the backend that made it. */
  objectFor(owner: object): NativeObject<Kind> {
    if (owner !== this.#owner) throw foreign(this.#noun);
    if (this.#object === undefined) {
      throw new OctavoError(
        "internal_error",
        `This ${this.#noun} has been disposed and cannot be used any more.`,
      );
    }
    return this.#object;
  }

  /** Gives the memory back as soon as no step or program uses it. Again is harmless. */
  [Symbol.dispose](): void {
    if (this.#object !== undefined) this.#release(this.#object);
    this.#object = undefined;
  }
}

export class NativeMappedFile extends Handle<"mapped-file"> implements MappedFile {
  readonly path: string;
  readonly byteLength: number;

  constructor(
    owner: object,
    object: NativeObject<"mapped-file">,
    release: (object: NativeObject<"mapped-file">) => void,
    path: string,
    byteLength: number,
  ) {
    super("mapped file", owner, object, release);
    this.path = path;
    this.byteLength = byteLength;
  }
}

export class NativeMatrix extends Handle<"matrix"> implements Matrix {
  readonly rows: number;
  readonly cols: number;
  readonly byteLength: number;

  constructor(
    owner: object,
    object: NativeObject<"matrix">,
    release: (object: NativeObject<"matrix">) => void,
    shape: { readonly rows: number; readonly cols: number; readonly byteLength: number },
  ) {
    super("matrix", owner, object, release);
    this.rows = shape.rows;
    this.cols = shape.cols;
    this.byteLength = shape.byteLength;
  }
}

export class NativeVector extends Handle<"vector"> implements Vector {
  readonly length: number;

  constructor(
    owner: object,
    object: NativeObject<"vector">,
    release: (object: NativeObject<"vector">) => void,
    length: number,
  ) {
    super("vector", owner, object, release);
    this.length = length;
  }
}

export class NativeProgram extends Handle<"program"> implements Program {
  readonly kind = "program";
  readonly checked: CheckedProgram;

  constructor(
    owner: object,
    object: NativeObject<"program">,
    release: (object: NativeObject<"program">) => void,
    checked: CheckedProgram,
  ) {
    super("program", owner, object, release);
    this.checked = checked;
  }
}

export class NativeAdapter extends Handle<"adapter"> implements Adapter {
  readonly kind = "adapter";
  readonly program: Program;

  constructor(
    owner: object,
    object: NativeObject<"adapter">,
    release: (object: NativeObject<"adapter">) => void,
    program: Program,
  ) {
    super("adapter", owner, object, release);
    this.program = program;
  }
}

export class NativeKvCache extends Handle<"kv-cache"> implements KvCache {
  readonly numBlocks: number;
  readonly blockSize: number;
  readonly byteLength: number;
  readonly spec: KvCacheSpec;

  constructor(
    owner: object,
    object: NativeObject<"kv-cache">,
    release: (object: NativeObject<"kv-cache">) => void,
    spec: KvCacheSpec,
    byteLength: number,
  ) {
    super("KV cache", owner, object, release);
    this.numBlocks = spec.numBlocks;
    this.blockSize = spec.blockSize;
    this.byteLength = byteLength;
    this.spec = spec;
  }
}

export class NativeSamplerState extends Handle<"sampler-state"> implements SamplerState {
  readonly kind = "sampler-state";

  constructor(
    owner: object,
    object: NativeObject<"sampler-state">,
    release: (object: NativeObject<"sampler-state">) => void,
  ) {
    super("sampler state", owner, object, release);
  }
}

export function foreign(noun: string): OctavoError {
  return new OctavoError(
    "internal_error",
    `This ${noun} was made by another backend; a backend uses only its own.`,
  );
}
