import type { Activation, KvDtype, Op, RopeSpec } from "../backend.js";
import { roundToKv } from "./half-floats.js";

/** The ops as their docstrings say, in double precision and in no hurry. */

export function rmsNorm(
  input: ArrayLike<number>,
  weight: ArrayLike<number>,
  options: { readonly eps: number; readonly groupSize?: number; readonly weightOffset?: number },
): number[] {
  const values = Array.from(input);
  const size = options.groupSize ?? values.length;
  return values.map((value, i) => {
    const group = values.slice(i - (i % size), i - (i % size) + size);
    const mean = group.reduce((sum, x) => sum + x * x, 0) / size;
    return (
      (value / Math.sqrt(mean + options.eps)) *
      ((weight[weight.length > size ? i : i % size] ?? 0) + (options.weightOffset ?? 0))
    );
  });
}

export function layerNorm(
  input: ArrayLike<number>,
  weight: ArrayLike<number>,
  options: { readonly eps: number; readonly bias?: ArrayLike<number> | undefined },
): number[] {
  const values = Array.from(input);
  const mean = values.reduce((sum, x) => sum + x, 0) / values.length;
  const variance = values.reduce((sum, x) => sum + (x - mean) ** 2, 0) / values.length;
  const deviation = Math.sqrt(variance + options.eps);
  return values.map((value, i) => ((value - mean) / deviation) * (weight[i] ?? 0) + (options.bias?.[i] ?? 0));
}

/** Values of E4M3 times one scale a group. */
export function roundE4m3(input: ArrayLike<number>, groupSize: number): number[] {
  const values = Array.from(input, Math.fround);
  return values.map((value, i) => {
    const first = i - (i % groupSize);
    const most = Math.max(...values.slice(first, first + groupSize).map(Math.abs));
    if (most === 0) return 0;
    const scale = Math.fround(most / 448);
    const scaled = Math.fround(value / scale);
    const step = 2 ** (Math.max(Math.floor(Math.log2(Math.abs(scaled) || 2 ** -6)), -6) - 3);
    const [low, rest] = [Math.floor(scaled / step), (scaled / step) % 1];
    const share = rest < 0 ? rest + 1 : rest;
    const even = share > 0.5 || (share === 0.5 && low % 2 !== 0) ? low + 1 : low;
    return Math.max(-448, Math.min(448, even * step)) * scale;
  });
}

export function rope(input: ArrayLike<number>, headDim: number, position: number, spec: RopeSpec): number[] {
  const values = Array.from(input);
  const pairs = spec.inverseFrequencies.length;
  const { beta, every, offset = 0 } = spec.growth ?? { beta: 0, every: 1 };
  const factor = spec.attentionFactor * (1 + beta * Math.log(1 + Math.floor((position + offset) / every)));
  for (let head = 0; head < values.length; head += headDim) {
    for (let pair = 0; pair < pairs; pair++) {
      const angle = Math.fround(position * (spec.inverseFrequencies[pair] ?? 0));
      const [left, right] =
        spec.layout === "neox" ? [head + pair, head + pair + pairs] : [head + 2 * pair, head + 2 * pair + 1];
      const [x = 0, y = 0] = [values[left], values[right]];
      values[left] = (x * Math.cos(angle) - y * Math.sin(angle)) * factor;
      values[right] = (y * Math.cos(angle) + x * Math.sin(angle)) * factor;
    }
  }
  return values;
}

export function activateGated(activation: Activation, gate: number, up: number): number {
  if (activation !== "clamped_swiglu") return activate(activation, gate) * up;
  const bounded = Math.min(gate, 7);
  return (bounded / (1 + Math.exp(-1.702 * bounded))) * (Math.min(Math.max(up, -7), 7) + 1);
}

function activate(activation: Exclude<Activation, "clamped_swiglu">, x: number): number {
  if (activation === "silu") return x / (1 + Math.exp(-x));
  if (activation === "sigmoid") return 1 / (1 + Math.exp(-x));
  if (activation === "identity") return x;
  if (activation === "relu_squared") return Math.max(x, 0) ** 2;
  if (activation === "tanh") return Math.tanh(x);
  if (activation === "relu") return Math.max(0, x);
  if (activation === "gelu_tanh") {
    return 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)));
  }
  return x * normalDistribution(x);
}

/** The cumulative standard normal, by Simpson's rule over the density. */
function normalDistribution(x: number): number {
  const end = Math.min(Math.abs(x), 12);
  const steps = 2000;
  const width = end / steps;
  let sum = 0;
  for (let i = 0; i <= steps; i++) {
    const weight = i === 0 || i === steps ? 1 : i % 2 === 1 ? 4 : 2;
    sum += weight * Math.exp((-i * width * (i * width)) / 2);
  }
  const half = (sum * width) / 3 / Math.sqrt(2 * Math.PI);
  return x >= 0 ? 0.5 + half : 0.5 - half;
}

export interface AttentionShape {
  readonly numHeads: number;
  readonly numKvHeads: number;
  readonly headDim: number;
  /** Latent attention: values are the last columns of keys. */
  readonly valueDim?: number;
  readonly scale: number;
  readonly slidingWindow?: number;
  readonly chunk?: number;
  readonly lookAhead?: number;
  readonly softCap?: number;
  /** One per head. */
  readonly sinks?: readonly number[];
}

/** Output row of the token at `position`, given all of its sequence's keys and values in order of position. */
export function attend(
  shape: AttentionShape,
  dtype: KvDtype,
  position: number,
  q: ArrayLike<number>,
  keys: readonly ArrayLike<number>[],
  values: readonly ArrayLike<number>[],
): number[] {
  const { numHeads, numKvHeads, headDim, softCap } = shape;
  const { slidingWindow, chunk } = shape;
  const inWindow = slidingWindow === undefined ? 0 : Math.max(0, position - slidingWindow + 1);
  const first = chunk === undefined ? inWindow : position - (position % chunk);
  const last = Math.min(position + (shape.lookAhead ?? 0), keys.length - 1);
  const stored = (rows: readonly ArrayLike<number>[], column: number): number[][] =>
    rows.slice(0, last + 1).map((row) => roundToKv(dtype, Array.from(row).slice(column, column + headDim)));
  return Array.from({ length: numHeads }, (_, head) => {
    const kv = Math.floor(head / (numHeads / numKvHeads)) * headDim;
    const [k, v] = [stored(keys, kv), stored(values, kv)];
    const scores: number[] = [];
    for (let at = first; at <= last; at++) {
      let dot = 0;
      for (let d = 0; d < headDim; d++) dot += (q[head * headDim + d] ?? 0) * (k[at]?.[d] ?? 0);
      const score = dot * shape.scale;
      scores.push(softCap === undefined ? score : softCap * Math.tanh(score / softCap));
    }
    const sink = shape.sinks?.[head] ?? -Infinity;
    const most = Math.max(sink, ...scores);
    const weights = scores.map((score) => Math.exp(score - most));
    const total = weights.reduce((sum, weight) => sum + weight, Math.exp(sink - most));
    const { valueDim = headDim } = shape;
    return Array.from({ length: valueDim }, (_column, d) =>
      weights.reduce(
        (sum, weight, i) => sum + (weight / total) * (v[first + i]?.[headDim - valueDim + d] ?? 0),
        0,
      ),
    );
  }).flat();
}

export type RoutingRule = Pick<
  Extract<Op, { op: "experts" }>,
  "topK" | "softmaxOver" | "scoring" | "groups" | "weightScale"
>;

/** The experts that a row's scores choose, in ascending order, each with its weight. */
export function routeToExperts(
  scores: readonly number[],
  { topK, softmaxOver, scoring, groups, weightScale = 1 }: RoutingRule,
  bias: ArrayLike<number> = [],
): (readonly [expert: number, weight: number])[] {
  const largest = Math.max(...scores);
  const sumOf = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0);
  const powers = scores.map((score) => Math.exp(score - largest));
  const all = sumOf(powers);
  const shares =
    scoring === "sigmoid"
      ? scores.map((score) => 1 / (1 + Math.exp(-score)))
      : powers.map((power) => power / all);
  let ranked = shares
    .map((share, expert) => ({ expert, rank: share + (bias[expert] ?? 0) }))
    .toSorted((a, b) => b.rank - a.rank);
  if (groups !== undefined) {
    const size = scores.length / groups.count;
    const numCounted = groups.by === "best" ? 1 : 2;
    const rankOf = (group: number): number =>
      sumOf(
        ranked
          .filter(({ expert }) => Math.floor(expert / size) === group)
          .slice(0, numCounted)
          .map(({ rank }) => rank),
      );
    const best = Array.from({ length: groups.count }, (_, group) => group)
      .toSorted((a, b) => rankOf(b) - rankOf(a))
      .slice(0, groups.chosen);
    ranked = ranked.filter(({ expert }) => best.includes(Math.floor(expert / size)));
  }
  const chosen = ranked
    .slice(0, topK)
    .map(({ expert }) => expert)
    .toSorted((a, b) => a - b);
  const total = softmaxOver === "chosen" ? sumOf(chosen.map((expert) => shares[expert] ?? 0)) : 1;
  return chosen.map((expert) => [expert, ((shares[expert] ?? 0) / total) * weightScale]);
}
