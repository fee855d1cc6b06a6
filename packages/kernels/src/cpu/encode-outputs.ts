import type { OutputRow, RowPooling, SamplerState } from "../backend.js";
import type { NativeObject, NativeOutputs } from "./addon.js";

export const poolings = ["none", "mean", "max"] as const satisfies (RowPooling["kind"] | "none")[];

export const outputKinds = ["sample", "score", "hidden"] as const satisfies OutputRow["kind"][];

/** Integers of a row; `numTop` is -1 without logprobs, `state` and `mask` are -1 where there is none. */
export const outputIntegers = [
  "kind",
  "target",
  "numTop",
  "numIds",
  "topK",
  "index",
  "suppressStops",
  "state",
  "mask",
  "afterDraft",
  "wantDigest",
  "pooling",
  "numPooled",
] as const;
export const outputReals = ["temperature", "topP", "minP"] as const;

const integerAt = positions(outputIntegers);
const realAt = positions(outputReals);
const none = -1;

function positions<Name extends string>(names: readonly Name[]): Readonly<Record<Name, number>> {
  return Object.fromEntries(names.map((name, index) => [name, index])) as Record<Name, number>;
}

/** Packs output rows into flat arrays. They are reused from step to step; the addon copies them before it returns. */
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
      const at = index * outputIntegers.length;
      integers.fill(0, at, at + outputIntegers.length);
      integers[at + integerAt.kind] = outputKinds.indexOf(output.kind);
      integers[at + integerAt.state] = none;
      integers[at + integerAt.mask] = none;
      if (output.kind === "hidden") {
        integers[at + integerAt.pooling] = poolings.indexOf(output.pool?.kind ?? "none");
        integers[at + integerAt.numPooled] = output.pool?.tokens ?? 0;
        continue;
      }
      integers[at + integerAt.numTop] =
        output.numLogprobs === undefined ? none : Math.min(output.numLogprobs, vocabSize);
      if (output.kind === "score") {
        integers[at + integerAt.target] = output.target;
        continue;
      }
      const { sampling, logprobIds: ids } = output;
      if (ids !== undefined) logprobIds.push(ids);
      integers[at + integerAt.numIds] = ids?.length ?? 0;
      integers[at + integerAt.topK] = sampling.topK;
      integers[at + integerAt.index] = sampling.index;
      integers[at + integerAt.suppressStops] = sampling.suppressStops === true ? 1 : 0;
      if (sampling.state !== undefined)
        integers[at + integerAt.state] = states.push(stateOf(sampling.state)) - 1;
      if (sampling.mask !== undefined) integers[at + integerAt.mask] = masks.push(sampling.mask) - 1;
      integers[at + integerAt.afterDraft] = output.afterDraft === true ? 1 : 0;
      integers[at + integerAt.wantDigest] = output.wantDigest === true ? 1 : 0;
      reals[index * outputReals.length + realAt.temperature] = sampling.temperature;
      reals[index * outputReals.length + realAt.topP] = sampling.topP;
      reals[index * outputReals.length + realAt.minP] = sampling.minP;
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
    this.#integers = new Int32Array(rows * outputIntegers.length);
    this.#reals = new Float32Array(rows * outputReals.length);
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
