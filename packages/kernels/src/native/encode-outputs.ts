import type { OutputRow, SamplerState } from "../backend.js";
import type { NativeObject, NativeOutputs } from "./addon.js";

const kinds = { sample: 0, score: 1, hidden: 2 } as const;
const integersPerRow = 10;
const realsPerRow = 3;
const none = -1;

/**
 * Packs output rows into flat arrays, read by native/binding/step_binding.cpp. Integers of a row: kind, target, number of
 * top logprobs (-1: no logprobs), number of ids, top-k, index, whether stops are suppressed, state (-1: none), mask (-1: none), and bits: it
 * stands after a draft (1), it wants a digest (2). Reals: temperature, top-p, min-p. The arrays are reused from step to step; the addon copies them before it returns.
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
    const integers = this.#integers;
    const reals = this.#reals;
    const states: NativeObject<"sampler-state">[] = [];
    const masks: Uint32Array[] = [];
    const logprobIds: Int32Array[] = [];
    for (let index = 0; index < outputs.length; index++) {
      const output = outputs[index]!;
      const at = index * integersPerRow;
      integers.fill(0, at, at + integersPerRow);
      integers[at] = kinds[output.kind];
      integers[at + 7] = none;
      integers[at + 8] = none;
      if (output.kind === "hidden") continue;
      integers[at + 2] = output.numLogprobs === undefined ? none : Math.min(output.numLogprobs, vocabSize);
      if (output.kind === "score") {
        integers[at + 1] = output.target;
        continue;
      }
      const { sampling, logprobIds: ids } = output;
      if (ids !== undefined) logprobIds.push(ids);
      integers[at + 3] = ids?.length ?? 0;
      integers[at + 4] = sampling.topK;
      integers[at + 5] = sampling.index;
      integers[at + 6] = sampling.suppressStops === true ? 1 : 0;
      if (sampling.state !== undefined) integers[at + 7] = states.push(stateOf(sampling.state)) - 1;
      if (sampling.mask !== undefined) integers[at + 8] = masks.push(sampling.mask) - 1;
      integers[at + 9] = (output.afterDraft === true ? 1 : 0) | (output.wantDigest === true ? 2 : 0);
      reals[index * realsPerRow] = sampling.temperature;
      reals[index * realsPerRow + 1] = sampling.topP;
      reals[index * realsPerRow + 2] = sampling.minP;
      // The array keeps the low 64 bits.
      this.#seeds[index] = sampling.seed;
    }
    return {
      count: outputs.length,
      integers,
      reals,
      seeds: this.#seeds,
      states,
      masks,
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

const empty = new Int32Array(0);

function concatenate(parts: readonly Int32Array[]): Int32Array {
  if (parts.length === 0) return empty;
  const whole = new Int32Array(parts.reduce((sum, part) => sum + part.length, 0));
  let offset = 0;
  for (const part of parts) {
    whole.set(part, offset);
    offset += part.length;
  }
  return whole;
}
