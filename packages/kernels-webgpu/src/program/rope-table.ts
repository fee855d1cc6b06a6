import type { RopeSpec } from "@octavo/kernels";
import { OctavoError } from "@octavo/protocol/errors";

/** Positions whose rows are kept. */
const keptPositions = 8192;

/** Cosines and sines of positions, in double precision: a GPU's are only good near zero. */
export class RopeTable {
  readonly pairs: number;
  readonly #spec: RopeSpec;
  #kept = new Float32Array(0);
  #numKept = 0;

  constructor(spec: RopeSpec) {
    this.#spec = spec;
    this.pairs = spec.inverseFrequencies.length;
  }

  /** Writes each token's cosines, then sines, of all pairs. */
  write(positions: Int32Array, numTokens: number, out: Float32Array): void {
    const width = 2 * this.pairs;
    for (let token = 0; token < numTokens; token++) {
      const position = positions[token] ?? 0;
      if (position >= keptPositions) {
        this.#compute(position, out, token * width);
        continue;
      }
      if (position >= this.#numKept) this.#keep(position);
      out.set(this.#kept.subarray(position * width, (position + 1) * width), token * width);
    }
  }

  #keep(position: number): void {
    const width = 2 * this.pairs;
    if ((position + 1) * width > this.#kept.length) {
      const larger = new Float32Array(
        Math.min(keptPositions, 2 ** Math.ceil(Math.log2(position + 64))) * width,
      );
      larger.set(this.#kept);
      this.#kept = larger;
    }
    for (; this.#numKept <= position; this.#numKept++)
      this.#compute(this.#numKept, this.#kept, this.#numKept * width);
  }

  #compute(position: number, out: Float32Array, at: number): void {
    const { inverseFrequencies, attentionFactor, growth } = this.#spec;
    const grown =
      growth === undefined
        ? 1
        : 1 + growth.beta * Math.log(1 + Math.floor((position + (growth.offset ?? 0)) / growth.every));
    const factor = attentionFactor * grown;
    for (let pair = 0; pair < this.pairs; pair++) {
      const angle = Math.fround(position * (inverseFrequencies[pair] ?? 0));
      out[at + pair] = Math.cos(angle) * factor;
      out[at + this.pairs + pair] = Math.sin(angle) * factor;
    }
  }
}

/** The tables of a program: rotations of equal angles, as those of most layers are, share one. */
export class RopeTables {
  readonly specs: readonly RopeSpec[];
  readonly #indexes = new Map<string, number>();

  constructor(all: readonly RopeSpec[]) {
    const specs: RopeSpec[] = [];
    for (const spec of all) {
      const key = tableKey(spec);
      if (!this.#indexes.has(key)) this.#indexes.set(key, specs.push(spec) - 1);
    }
    this.specs = specs;
  }

  /** The number of a rotation's table, among those of the program. */
  indexOf(spec: RopeSpec): number {
    const index = this.#indexes.get(tableKey(spec));
    if (index === undefined) throw new OctavoError("internal_error", "The program has no such rotation.");
    return index;
  }
}

function tableKey({ inverseFrequencies, attentionFactor, growth }: RopeSpec): string {
  return [attentionFactor, growth?.beta, growth?.every, ...inverseFrequencies].join();
}
