import type { RowError, RowSampling } from "@octavo/kernels";
import { uniform } from "./philox.js";
import type { TokenHistory } from "./sampler-state.js";

/** Below this vLLM takes a temperature for zero. Parameters are floats, as the CPU's sampler has them: 0.3 of equal weights may else be one token more. */
const coldest = Math.fround(1e-5);

export interface Sampled {
  readonly token: number;
  readonly error?: RowError;
}

/** Whether the row's most likely token is taken. */
export function isGreedy({ temperature }: RowSampling): boolean {
  return Math.fround(temperature) < coldest;
}

/** Of a token beside the most likely one, whose weight is 1; 0 where min-p cuts it off. */
export function weightOf(
  logit: number,
  largest: number,
  { temperature, minP }: Pick<RowSampling, "temperature" | "minP">,
): number {
  const weight = Math.fround(Math.exp((logit - largest) / Math.fround(temperature)));
  return weight >= Math.fround(Math.min(minP, 1)) ? weight : 0;
}

/** Whether a row's token is simply the most likely one, which the GPU has found. */
export function isPlainGreedy(sampling: RowSampling, history: TokenHistory | undefined): boolean {
  return (
    isGreedy(sampling) &&
    sampling.mask === undefined &&
    (history === undefined || !history.edits(sampling.suppressStops === true))
  );
}

/** Samples from a row of finite logits, which are changed; the order of `RowSampling`. Records the token. */
export function sampleRow(
  logits: Float32Array,
  sampling: RowSampling,
  mask: Uint32Array | undefined,
  history: TokenHistory | undefined,
): Sampled {
  if (mask !== undefined) applyMask(logits, mask);
  history?.edit(logits, sampling.suppressStops === true);
  let largest = -Infinity;
  let best = -1;
  for (const [id, logit] of logits.entries()) {
    if (Number.isNaN(logit) || logit === Infinity) return { token: -1, error: "non_finite_logits" };
    if (logit > largest) {
      largest = logit;
      best = id;
    }
  }
  if (best < 0) return { token: -1, error: "no_token_allowed" };
  const token = isGreedy(sampling) ? best : draw(logits, largest, sampling);
  history?.append(token);
  return { token };
}

function applyMask(logits: Float32Array, mask: Uint32Array): void {
  for (let id = 0; id < logits.length; id++)
    if ((((mask[id >> 5] ?? 0) >>> (id & 31)) & 1) === 0) logits[id] = -Infinity;
}

function draw(
  logits: Float32Array,
  largest: number,
  { topK, topP, seed, index, ...shape }: RowSampling,
): number {
  const weights = logits;
  let total = 0;
  for (let id = 0; id < weights.length; id++) {
    weights[id] = weightOf(logits[id] ?? 0, largest, shape);
    total += weights[id] ?? 0;
  }
  const u = uniform(seed, index);
  const hasTopK = topK > 0 && topK < weights.length;
  const cutsMass = Math.fround(topP) < 1;
  const kept =
    hasTopK || cutsMass
      ? keptIds(weights, total, hasTopK ? topK : undefined, cutsMass ? Math.fround(topP) : undefined)
      : undefined;
  const mass = kept === undefined ? total : kept.reduce((sum, id) => sum + (weights[id] ?? 0), 0);
  const target = u * mass;
  let reached = 0;
  let last = 0;
  for (let at = 0; at < (kept ?? weights).length; at++) {
    const id = kept === undefined ? at : (kept[at] ?? 0);
    const weight = weights[id] ?? 0;
    if (weight <= 0) continue;
    reached += weight;
    last = id;
    if (reached > target) break;
  }
  return last;
}

/** Weights, of which the largest is 1, that are tried first; usually the others are cut off. */
const firstThreshold = 1e-4;

/** Ids that top-k and top-p leave, ascending; ties go to the lowest id. */
function keptIds(
  weights: Float32Array,
  total: number,
  topK: number | undefined,
  topP: number | undefined,
): number[] {
  const collect = (threshold: number): number[] => {
    const ids: number[] = [];
    for (let id = 0; id < weights.length; id++) if ((weights[id] ?? 0) >= threshold) ids.push(id);
    return ids;
  };
  const massOf = (ids: readonly number[]): number => ids.reduce((sum, id) => sum + (weights[id] ?? 0), 0);
  let ids = collect(firstThreshold);
  const isEnough = topK !== undefined ? ids.length >= topK : massOf(ids) >= (topP ?? 1) * total;
  if (!isEnough) ids = collect(Number.MIN_VALUE);
  ids.sort((a, b) => (weights[b] ?? 0) - (weights[a] ?? 0) || a - b);
  const whole = topK === undefined ? total : massOf((ids = ids.slice(0, topK)));
  if (topP !== undefined) {
    let reached = 0;
    let count = 0;
    do reached += weights[ids[count++] ?? 0] ?? 0;
    while (reached < topP * whole && count < ids.length);
    ids = ids.slice(0, count);
  }
  return ids.sort((a, b) => a - b);
}
