import { readFileSync } from "node:fs";
import type {
  Adapter,
  AdapterSite,
  KvCache,
  KvCacheSpec,
  MappedFile,
  Matrix,
  Program,
  ProgramSpec,
  Vector,
} from "@octavo/kernels";
import { ReferenceStates } from "./reference-states.js";

export class ReferenceFile implements MappedFile {
  readonly path: string;
  readonly data: Uint8Array;

  constructor(path: string) {
    this.path = path;
    this.data = readFileSync(path);
  }

  get byteLength(): number {
    return this.data.byteLength;
  }

  [Symbol.dispose](): void {}
}

export class ReferenceMatrix implements Matrix {
  readonly cols: number;
  readonly values: Float32Array;

  constructor(cols: number, values: Float32Array) {
    this.cols = cols;
    this.values = values;
  }

  get rows(): number {
    return this.values.length / this.cols;
  }

  get byteLength(): number {
    return this.values.byteLength;
  }

  [Symbol.dispose](): void {}
}

export class ReferenceVector implements Vector {
  readonly values: Float32Array;

  constructor(values: Float32Array) {
    this.values = values;
  }

  get length(): number {
    return this.values.length;
  }

  [Symbol.dispose](): void {}
}

/** Keys and values of every slot, `[layer][slot * numKvHeads * headDim]`, always in f32. */
export class ReferenceKvCache implements KvCache {
  readonly numBlocks: number;
  readonly blockSize: number;
  readonly keys: readonly Float32Array[];
  readonly values: readonly Float32Array[];
  readonly states = new ReferenceStates();

  constructor(spec: KvCacheSpec) {
    this.numBlocks = spec.numBlocks;
    this.blockSize = spec.blockSize;
    const slots = spec.numBlocks * spec.blockSize;
    const empty = (): Float32Array[] =>
      spec.layers.map(({ numKvHeads, headDim }) => new Float32Array(slots * numKvHeads * headDim));
    this.keys = empty();
    this.values = empty();
  }

  get byteLength(): number {
    return [...this.keys, ...this.values].reduce((sum, layer) => sum + layer.byteLength, 0);
  }

  [Symbol.dispose](): void {}
}

export class ReferenceAdapter implements Adapter {
  readonly kind = "adapter";
  readonly sites: ReadonlyMap<number, AdapterSite>;

  constructor(sites: readonly AdapterSite[]) {
    this.sites = new Map(sites.map((site) => [site.site, site]));
  }

  [Symbol.dispose](): void {}
}

export class ReferenceProgram implements Program {
  readonly kind = "program";
  readonly spec: ProgramSpec;

  constructor(spec: ProgramSpec) {
    this.spec = spec;
  }

  [Symbol.dispose](): void {}
}
