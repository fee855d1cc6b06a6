import type { OutputRow, SamplerState } from "../backend.js";
import type { NativeObject, NativeOutputs } from "./addon.js";

const kinds = { sample: 0, score: 1, hidden: 2 } as const;
const integersPerRow = 8;
const realsPerRow = 3;
const none = -1;

/**
 * Packs output rows into flat arrays, read by native/binding/step_binding.cpp. Integers of a row: kind, target, number of
 * top logprobs (-1: no logprobs), number of ids, top-k, index, whether stops are suppressed, state (-1: none). Reals:
 * temperature, top-p, min-p. The arrays are reused from step to step; the addon copies them before it returns.
 */
export class OutputEncoder {
  #integers = new Int32Array(0);
  #reals = new Float32Array(0);
  #seeds = new BigUint64Array(0);

  encode(
    outputs: readonly OutputRow[],
    vocabSize: number,
    stateOf: (state: SamplerState) => NativeObject<"sampler-state">,
  ): NativeOutputs {
    this.#reserve(outputs.length);
    const states: NativeObject<"sampler-state">[] = [];
    const logprobIds: Int32Array[] = [];
    for (const [index, output] of outputs.entries()) {
      const at = index * integersPerRow;
      const integers = this.#integers.subarray(at, at + integersPerRow).fill(0);
      integers[0] = kinds[output.kind];
      integers[7] = none;
      if (output.kind === "hidden") continue;
      integers[2] = output.numLogprobs === undefined ? none : Math.min(output.numLogprobs, vocabSize);
      if (output.kind === "score") {
        integers[1] = output.target;
        continue;
      }
      const { sampling, logprobIds: ids } = output;
      if (ids !== undefined) logprobIds.push(ids);
      integers[3] = ids?.length ?? 0;
      integers[4] = sampling.topK;
      integers[5] = sampling.index;
      integers[6] = sampling.suppressStops === true ? 1 : 0;
      if (sampling.state !== undefined) integers[7] = states.push(stateOf(sampling.state)) - 1;
      this.#reals.set([sampling.temperature, sampling.topP, sampling.minP], index * realsPerRow);
      this.#seeds[index] = BigInt.asUintN(64, sampling.seed);
    }
    return {
      count: outputs.length,
      integers: this.#integers,
      reals: this.#reals,
      seeds: this.#seeds,
      states,
      logprobIds: concatenate(logprobIds),
    };
  }

  #reserve(rows: number): void {
    if (this.#seeds.length >= rows) return;
    this.#integers = new Int32Array(rows * integersPerRow);
    this.#reals = new Float32Array(rows * realsPerRow);
    this.#seeds = new BigUint64Array(rows);
  }
}

function concatenate(parts: readonly Int32Array[]): Int32Array {
  const whole = new Int32Array(parts.reduce((sum, part) => sum + part.length, 0));
  let offset = 0;
  for (const part of parts) {
    whole.set(part, offset);
    offset += part.length;
  }
  return whole;
}
