import type { KvDtype } from "@octavo/kernels";
import { kvHeadWords, kvReader } from "./kv-cache.js";
import { type Shader, shaderCode } from "./shader.js";

/** Positions whose softmax is summed apart before the parts are folded in order; a multiple of every chunk. */
export const segmentPositions = 256;

/** Below every score; WGSL leaves infinities open. */
export const lowest = "-3.0e38";

export const attentionParams = {
  rowsAt: "u32",
  q: "u32",
  qStride: "u32",
  to: "u32",
  toStride: "u32",
  numHeads: "u32",
  numKvHeads: "u32",
  blockSize: "u32",
  heads: "u32",
  window: "u32",
  period: "u32",
  ahead: "u32",
  hasSinks: "u32",
  scale: "f32",
  softCap: "f32",
} as const;

/** Joins a segment's softmax, of maximum `m`, sum `l` and values, to what came before. Both kernels fold alike. */
const foldFunctions = `
struct Fold { most: f32, before: f32, after: f32 }
fn fold(most: f32, next: f32) -> Fold {
  let both = max(most, next);
  return Fold(both, weight_of(most, both), weight_of(next, both));
}
fn weight_of(score: f32, most: f32) -> f32 {
  if (score == most) { return 1.0; }
  return exp(max(score - most, -200.0));
}
/** The sum that values are divided by, and the factor they are to take first, once a sink has joined. */
fn finished(most: f32, sum: f32, sink: f32) -> vec2<f32> {
  if (p.hasSinks == 0u) { return vec2<f32>(1.0, sum); }
  let f = fold(most, sink);
  return vec2<f32>(f.before, fma(sum, f.before, f.after));
}`;

/** The first position that a token sees: it does not go back from one token to the next. */
const sightFunction = `fn first_seen(own: u32) -> u32 {
  if (p.period != 0u) { return own - own % p.period; }
  if (p.window == 0u || own < p.window) { return 0u; }
  return own + 1u - p.window;
}`;

export interface AttentionKind {
  readonly dtype: KvDtype;
  readonly headDim: number;
  /** Columns of a value, the last of its key where they are fewer (latent attention). */
  readonly valueDim: number;
  /** The values lie in a buffer of their own. */
  readonly hasValues: boolean;
  /** Each segment is a workgroup of its own, which leaves its part in scratch memory for `combineShader`. */
  readonly isSplit: boolean;
}

/** How a workgroup goes through a chunk of positions: what lanes do, or matrix units. */
export interface ChunkCode {
  /** Names what differs from other code for the same kind. */
  readonly key: string;
  readonly threads: number;
  /** Queries, each a token's row of one head, that share the keys a workgroup reads. */
  readonly queries: number;
  /** Positions taken from the cache at a time; their borders are absolute. */
  readonly positions: number;
  readonly enables: readonly string[];
  readonly declarations: string;
  /** Parameters of `main`, and what it begins with. */
  readonly parameters: string;
  readonly begin: string;
  /** Keeps the value of a query's column where `attend` finds it. */
  readonly keep: string;
  /** Takes the chunk at position `at` into `most`, `sum` and the segment's values `acc`. */
  readonly attend: string;
}

/**
 * A workgroup takes a tile of tokens (x) and one kv head's share of the query heads (y), and all segments or one (z). A tile is a first row, a
 * number of rows, a sequence and unused; queries are numbered row by row.
 */
export function attentionShader(kind: AttentionKind, chunk: ChunkCode): Shader {
  const { dtype, headDim, valueDim, hasValues, isSplit } = kind;
  return {
    key: `attention ${chunk.key} ${dtype} ${headDim} ${hasValues ? "" : `latent ${valueDim} `}${isSplit ? "split" : "whole"}`,
    params: attentionParams,
    bindings: ["read", "read", "read", "write"],
    code: () =>
      shaderCode(
        attentionParams,
        [
          "var<storage, read> keys: array<u32>;",
          "var<storage, read> values: array<u32>;",
          "var<storage, read> sinks: array<f32>;",
          "var<storage, read_write> parts: array<f32>;",
        ],
        attentionBody(kind, chunk),
        chunk.enables,
      ),
  };
}

function attentionBody({ dtype, headDim, valueDim, isSplit }: AttentionKind, chunk: ChunkCode): string {
  const { threads, queries } = chunk;
  const perThread = Math.ceil((queries * valueDim) / threads);
  return `${kvReader(dtype, headDim, "keys")}
${kvReader(dtype, headDim, "values")}
${foldFunctions}
${sightFunction}
const dim = ${headDim}u;
const value_dim = ${valueDim}u;
const chunk = ${chunk.positions}u;
${chunk.declarations}
/** For each query: the segment's maximum and sum, the factor for what came before, and the same over all segments. */
var<workgroup> most: array<f32, ${queries}>;
var<workgroup> sum: array<f32, ${queries}>;
var<workgroup> factor: array<f32, ${queries}>;
var<workgroup> all_most: array<f32, ${queries}>;
var<workgroup> all_sum: array<f32, ${queries}>;
var<workgroup> all_factor: array<vec2<f32>, ${queries}>;

fn slot_of(sequence: u32, position: u32) -> u32 {
  let table = step_at(at_blockTableStarts, sequence);
  return step_at(at_blockTables, table + position / p.blockSize) * p.blockSize + position % p.blockSize;
}
fn row_position(row: u32, sequence: u32) -> u32 {
  return step_at(at_contextLengths, sequence) - step_at(at_queryStarts, sequence + 1u) + row;
}
fn score_of(dot: f32) -> f32 {
  let score = dot * p.scale;
  if (p.softCap == 0.0) { return score; }
  return p.softCap * tanh(clamp(score / p.softCap, -15.0, 15.0));
}

@compute @workgroup_size(${threads}) fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) index: u32${chunk.parameters}) {
  ${chunk.begin}
  let head_parts = p.heads;
  let first_row = step_at(at_tiles, group.x * 4u);
  let num_rows = step_at(at_tiles, group.x * 4u + 1u);
  let sequence = step_at(at_tiles, group.x * 4u + 2u);
  let of_kv = p.numHeads / p.numKvHeads;
  let parts_each = (of_kv + head_parts - 1u) / head_parts;
  let kv_head = group.y / parts_each;
  let first_head = (group.y % parts_each) * head_parts;
  let num_heads = min(head_parts, of_kv - first_head);
  let num_queries = num_rows * num_heads;
  let context = step_at(at_contextLengths, sequence);
  let last = min(row_position(first_row + num_rows - 1u, sequence) + p.ahead, context - 1u);
  let first = first_seen(row_position(first_row, sequence));
  ${chunk.keep}
  if (index < ${queries}u) { all_most[index] = ${lowest}; all_sum[index] = 0.0; }
  ${isSplit ? "" : `var all = array<f32, ${perThread}>();`}
  ${
    isSplit
      ? `let segment = group.z;
  if (segment * ${segmentPositions}u > last || (segment + 1u) * ${segmentPositions}u <= first) { return; }
  {`
      : `for (var segment = first / ${segmentPositions}u; segment * ${segmentPositions}u <= last; segment++) {`
  }
    var acc = array<f32, ${perThread}>();
    if (index < ${queries}u) { most[index] = ${lowest}; sum[index] = 0.0; }
    let end = min(last + 1u, (segment + 1u) * ${segmentPositions}u);
    var start = segment * ${segmentPositions}u;
    if (first > start) { start = first / chunk * chunk; }
    for (var at = start; at < end; at += chunk) {
      ${chunk.attend}
    }
    workgroupBarrier();
    ${isSplit ? splitEnd(perThread, threads) : foldEnd(perThread, threads)}
  }
  ${isSplit ? "" : wholeEnd(perThread, threads)}
}`;
}

/** Fills a tile of the chunk's keys, or values, `pitch` from position to position and zero outside; `stored` is how `value` is kept. */
export function tileOf(
  of: "keys" | "values",
  { dtype, headDim }: AttentionKind,
  tile: { readonly to: string; readonly columns: number; readonly pitch: number; readonly threads: number },
  stored: string,
): string {
  const { to, columns, pitch, threads } = tile;
  return `for (var i = index; i < ${columns}u * chunk; i += ${threads}u) {
        let position = at + i / ${columns}u;
        var value = 0.0;
        if (position >= first && position <= last${columns > headDim ? ` && i % ${columns}u < dim` : ""}) {
          value = ${of}_at((slot_of(sequence, position) * p.numKvHeads + kv_head) * ${kvHeadWords(dtype, headDim)}u, i % ${columns}u);
        }
        ${to}i / ${columns}u * ${pitch}u + i % ${columns}u] = ${stored};
      }`;
}

const outputAt = `let query = i / value_dim;
      let row = first_row + query / num_heads;
      let head = kv_head * of_kv + first_head + query % num_heads;`;

function splitEnd(perThread: number, threads: number): string {
  return `for (var e = 0u; e < ${perThread}u; e++) {
      let i = index + e * ${threads}u;
      if (i >= num_queries * value_dim) { continue; }
      ${outputAt}
      let part = ((row * p.numHeads + head) * step[at_numSegments] + segment) * (value_dim + 2u);
      parts[part + 2u + i % value_dim] = acc[e];
      if (i % value_dim == 0u) { parts[part] = most[query]; parts[part + 1u] = sum[query]; }
    }`;
}

function foldEnd(perThread: number, threads: number): string {
  return `if (index < num_queries) {
      let f = fold(all_most[index], most[index]);
      all_most[index] = f.most;
      all_sum[index] = fma(all_sum[index], f.before, sum[index] * f.after);
      all_factor[index] = vec2<f32>(f.before, f.after);
    }
    workgroupBarrier();
    for (var e = 0u; e < ${perThread}u; e++) {
      let i = index + e * ${threads}u;
      if (i < num_queries * value_dim) { let f = all_factor[i / value_dim]; all[e] = fma(all[e], f.x, acc[e] * f.y); }
    }`;
}

function wholeEnd(perThread: number, threads: number): string {
  return `workgroupBarrier();
  for (var e = 0u; e < ${perThread}u; e++) {
    let i = index + e * ${threads}u;
    if (i >= num_queries * value_dim) { continue; }
      ${outputAt}
    let f = finished(all_most[query], all_sum[query], sinks[p.hasSinks * head]);
    st(p.to + row * p.toStride + head * value_dim + i % value_dim, all[e] * f.x / f.y);
  }`;
}

/** Folds the segments of one row (y) and head (x) in order. */
export function combineShader(valueDim: number): Shader {
  return {
    key: `attention combine ${valueDim}`,
    params: attentionParams,
    bindings: ["read", "read"],
    code: () =>
      shaderCode(
        attentionParams,
        ["var<storage, read> sinks: array<f32>;", "var<storage, read> parts: array<f32>;"],
        `${foldFunctions}
${sightFunction}
const dim = ${valueDim}u;
@compute @workgroup_size(64) fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let head = group.x;
  let row = group.y;
  var sequence = 0u;
  loop { if (row < step_at(at_queryStarts, sequence + 1u)) { break; } sequence++; }
  let context = step_at(at_contextLengths, sequence);
  let own = context - step_at(at_queryStarts, sequence + 1u) + row;
  let last = min(own + p.ahead, context - 1u);
  let first = first_seen(own);
  for (var d = lane; d < dim; d += 64u) {
    var most = ${lowest};
    var sum = 0.0;
    var value = 0.0;
    for (var segment = first / ${segmentPositions}u; segment * ${segmentPositions}u <= last; segment++) {
      let part = ((row * p.numHeads + head) * step[at_numSegments] + segment) * (dim + 2u);
      let f = fold(most, parts[part]);
      most = f.most;
      sum = fma(sum, f.before, parts[part + 1u] * f.after);
      value = fma(value, f.before, parts[part + 2u + d] * f.after);
    }
    let f = finished(most, sum, sinks[p.hasSinks * head]);
    st(p.to + row * p.toStride + head * dim + d, value * f.x / f.y);
  }
}`,
      ),
  };
}
