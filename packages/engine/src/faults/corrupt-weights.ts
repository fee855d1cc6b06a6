import { createHash } from "node:crypto";
import { OctavoError } from "@octavo/protocol/errors";
import { convertFloats } from "@octavo/artifacts/program/float-conversion";
import type { FloatType } from "@octavo/artifacts/checkpoint/tensor-storage";
import { FaultRandom } from "./fault-random.js";

/** Simulates a replica with silently corrupted weights: seeded noise on matrices as they are loaded. */
export interface WeightCorruption {
  readonly seed: number;
  /** Standard deviation of the noise relative to the tensor's root mean square; above 0, at most 10. */
  readonly scale: number;
  /** Tensor names, where `*` matches any characters; default all matrices. */
  readonly pattern?: string | undefined;
}

const maxPattern = 512;

/** Adds the noise. A tensor's noise depends only on the seed and its name, not on the order of loading. */
export class WeightCorruptor {
  readonly #corruption: WeightCorruption;
  /** The literal parts of the pattern, which a name contains in this order. */
  readonly #pieces: readonly string[];

  /** Throws `invalid_option` for a value out of range. */
  constructor(corruption: WeightCorruption) {
    const { seed, scale, pattern = "*" } = corruption;
    const refuse = (expected: string): never => {
      throw new OctavoError("invalid_option", `corrupt_weights: expected ${expected}`, {
        param: "corrupt_weights",
      });
    };
    if (!Number.isSafeInteger(seed) || seed < 0)
      refuse(`a seed that is an integer of at least 0, got ${seed}`);
    if (!(scale > 0 && scale <= 10)) refuse(`a scale above 0 and at most 10, got ${scale}`);
    if (pattern === "" || pattern.length > maxPattern)
      refuse(`a pattern of 1 to ${maxPattern} characters, got ${pattern.length}`);
    this.#corruption = corruption;
    this.#pieces = pattern.split("*");
  }

  /** Throws `invalid_option` if no name matches: nothing would be corrupted. */
  checkMatches(names: Iterable<string>): void {
    for (const name of names) if (this.matches(name)) return;
    const pattern = JSON.stringify(this.#corruption.pattern ?? "*");
    throw new OctavoError(
      "invalid_option",
      `corrupt_weights: no matrix of the model has a name like ${pattern}`,
      {
        param: "corrupt_weights",
      },
    );
  }

  matches(name: string): boolean {
    const [first = "", ...rest] = this.#pieces;
    if (!name.startsWith(first)) return false;
    const last = rest.pop();
    if (last === undefined) return name === first;
    let end = first.length;
    for (const piece of rest) {
      const start = name.indexOf(piece, end);
      if (start === -1) return false;
      end = start + piece.length;
    }
    return name.length - last.length >= end && name.endsWith(last);
  }

  /** A copy with noise, little-endian as stored. */
  floats(name: string, bytes: Uint8Array, from: FloatType, to: FloatType): Uint8Array {
    const values = new Float32Array(convertFloats(bytes.slice(), from, "f32").buffer);
    let squares = 0;
    for (const value of values) squares += value * value;
    const deviation = this.#corruption.scale * Math.sqrt(squares / Math.max(1, values.length));
    const random = this.#randomOf(name);
    for (let index = 0; index < values.length; index += 1)
      values[index] = values[index]! + deviation * random.normal();
    return convertFloats(new Uint8Array(values.buffer), "f32", to);
  }

  /** For quantised weights, corrupts each scale in proportion to itself and keeps the codes. */
  scales(name: string, scales: Float32Array): Float32Array {
    const random = this.#randomOf(name);
    return scales.map((scale) => scale * (1 + this.#corruption.scale * random.normal()));
  }

  #randomOf(name: string): FaultRandom {
    const digest = createHash("sha256").update(`${this.#corruption.seed}:${name}`).digest();
    return new FaultRandom([digest.readInt32LE(0), digest.readInt32LE(4), digest.readInt32LE(8)]);
  }
}
