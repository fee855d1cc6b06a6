import type { RowSampling, SamplerState, SamplerStateSpec } from "@octavo/kernels";
import assert from "node:assert/strict";
import { logSoftmax, ranking } from "@octavo/kernels/testing/logit-harness";

/** One step of a 32-bit hash (MurmurHash3's mixing). */
export function mix(hash: number, value: number): number {
  let mixed = Math.imul(value, 0xcc9e2d51);
  mixed = Math.imul((mixed << 15) | (mixed >>> 17), 0x1b873593);
  mixed ^= hash;
  mixed = Math.imul((mixed << 13) | (mixed >>> 19), 5) + 0xe6546b64;
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b);
  return (mixed ^ (mixed >>> 13)) >>> 0;
}

/** Logits computed from a hash, in [-4, 4). */
export function logitsOf(hash: number, vocabSize: number): Float32Array {
  return Float32Array.from({ length: vocabSize }, (_, token) => (mix(hash, token) / 2 ** 32) * 8 - 4);
}

/** A sampler state that checks that each output token is counted exactly once. */
export class FakeSamplerState implements SamplerState {
  readonly kind = "sampler-state";
  readonly spec: SamplerStateSpec;
  readonly outputs: number[];
  readonly #onDispose: () => void;
  #isDisposed = false;

  constructor(spec: SamplerStateSpec, onDispose: () => void) {
    this.spec = spec;
    this.outputs = [...spec.outputTokens];
    this.#onDispose = onDispose;
  }

  get isDisposed(): boolean {
    return this.#isDisposed;
  }

  [Symbol.dispose](): void {
    assert(!this.#isDisposed, "a sampler state was disposed twice");
    this.#isDisposed = true;
    this.#onDispose();
  }

  apply(logits: Float64Array, suppressStops: boolean): void {
    const { spec } = this;
    const { allowedTokens, badWords, stopTokens, logitBias } = spec;
    if (allowedTokens !== undefined) {
      const allowed = new Set(allowedTokens);
      for (const token of logits.keys()) if (!allowed.has(token)) logits[token] = Number.NEGATIVE_INFINITY;
    }
    for (const word of badWords ?? []) {
      const history = this.outputs.slice(this.outputs.length - word.length + 1);
      const last = word.at(-1);
      if (last !== undefined && word.slice(0, -1).every((token, index) => token === history[index])) {
        logits[last] = Number.NEGATIVE_INFINITY;
      }
    }
    if (suppressStops) for (const token of stopTokens ?? []) logits[token] = Number.NEGATIVE_INFINITY;
    for (const [index, token] of (logitBias?.ids ?? []).entries()) {
      logits[token] = (logits[token] ?? 0) + (logitBias?.values[index] ?? 0);
    }
    for (const token of new Set([...spec.promptTokens, ...this.outputs])) {
      const logit = logits[token] ?? 0;
      logits[token] = logit > 0 ? logit / spec.repetitionPenalty : logit * spec.repetitionPenalty;
    }
    for (const token of this.outputs) logits[token] = (logits[token] ?? 0) - spec.frequencyPenalty;
    for (const token of new Set(this.outputs)) logits[token] = (logits[token] ?? 0) - spec.presencePenalty;
  }
}

/** Returned by `sampleToken` when no token is allowed. */
export const noToken = -1;

/** Greedy, or sampled from the tempered distribution with a random number keyed by (seed, index). */
export function sampleToken(raw: Float32Array, sampling: RowSampling): number {
  const logits = Float64Array.from(raw);
  const { mask } = sampling;
  if (mask !== undefined) {
    assert.equal(mask.length, Math.ceil(raw.length / 32), "a mask of the wrong length");
    for (const token of logits.keys())
      if (((mask[token >> 5]! >>> (token & 31)) & 1) === 0) logits[token] = Number.NEGATIVE_INFINITY;
  }
  if (sampling.state instanceof FakeSamplerState) {
    const { state } = sampling;
    assert(!state.isDisposed, "a row uses a disposed sampler state");
    assert.equal(
      state.outputs.length,
      sampling.index,
      "the sampler state and the row disagree on the outputs so far",
    );
    state.apply(logits, sampling.suppressStops === true);
  }
  if (logits.every((logit) => logit === Number.NEGATIVE_INFINITY)) return noToken;
  const logprobs = logSoftmax(
    sampling.temperature === 0 ? logits : logits.map((logit) => logit / sampling.temperature),
  );
  let token = ranking(logprobs)[0] ?? 0;
  if (sampling.temperature > 0) {
    const seed = mix(mix(17, Number(sampling.seed & 0xffffffffn)), Number(sampling.seed >> 32n));
    let left = mix(seed, sampling.index) / 2 ** 32;
    for (const candidate of logprobs.keys()) {
      left -= Math.exp(logprobs[candidate] ?? 0);
      if (left < 0) {
        token = candidate;
        break;
      }
    }
  }
  if (sampling.state instanceof FakeSamplerState) sampling.state.outputs.push(token);
  return token;
}
