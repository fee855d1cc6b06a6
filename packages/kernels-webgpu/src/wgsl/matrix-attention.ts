import { type AttentionKind, type ChunkCode, lowest, tileOf } from "./attention.js";
import { type MatrixUnit, numSubgroups, tileCode, unitThreads } from "./matrix-unit.js";

const positions = 32;
/** Elements between rows in workgroup memory: rows that begin in different banks. */
const gap = 8;

/** What a workgroup holds: columns of a head, padded to whole tiles, and the queries that share its keys. */
export interface MatrixAttention {
  readonly unit: MatrixUnit;
  readonly columns: number;
  readonly queries: number;
}

/** Undefined where a device's unit or memory does not suffice, or keys and values are one. */
export function matrixAttentionOf(
  unit: MatrixUnit | undefined,
  { headDim, hasValues }: Pick<AttentionKind, "headDim" | "hasValues">,
  sharedBytes: number,
): MatrixAttention | undefined {
  if (unit === undefined || !hasValues) return undefined;
  const { m, n, k } = unit.shape;
  const step = Math.max(n, k);
  if (positions % n !== 0 || positions % k !== 0 || step % n !== 0 || step % k !== 0) return undefined;
  const columns = Math.ceil(headDim / step) * step;
  const threads = unitThreads(unit);
  const queries = [32, 16].find(
    (count) =>
      count % m === 0 && threads % count === 0 && bytesOf({ unit, columns, queries: count }) <= sharedBytes,
  );
  return queries === undefined ? undefined : { unit, columns, queries };
}

/** Where values or keys, and the weights of a chunk's positions, begin in `halves`; queries stand first. */
function layoutOf({ columns, queries }: MatrixAttention): {
  readonly tile: number;
  readonly weights: number;
  readonly length: number;
} {
  const tile = queries * (columns + gap);
  const weights = tile + positions * (columns + gap);
  return { tile, weights, length: weights + queries * (positions + gap) };
}

function bytesOf(form: MatrixAttention): number {
  const { unit, columns, queries } = form;
  const floats = queries * (Math.max(columns, positions) + 8) + 2 * unitThreads(unit);
  return 4 * floats + tileCode(unit).halfBytes * layoutOf(form).length;
}

/**
 * Attention on matrix units: queries, keys, values and the weights of positions become f16, sums are f32. Scores of 32 positions are summed over
 * the head's columns in order, then values over the positions; nothing that a query computes depends on the others of its tile.
 */
export function matrixChunks(kind: AttentionKind, form: MatrixAttention): ChunkCode {
  const { unit, columns, queries } = form;
  const { m, n, k } = unit.shape;
  const { valueDim } = kind;
  const [tiles, at, threads] = [tileCode(unit), layoutOf(form), unitThreads(unit)];
  const [pitch, weightPitch] = [columns + gap, positions + gap];
  /** Threads of a query where softmax is taken, each with a run of positions. */
  const each = threads / queries;
  const run = positions / each;
  const bounded = "clamp(value, -65504.0, 65504.0)";
  const tile = { to: `halves[${at.tile}u + `, columns, pitch, threads };
  return {
    key: `${queries} on ${unit.isEmulated === true ? "lanes as " : ""}${m}x${n}x${k}`,
    threads,
    queries,
    positions,
    enables: tiles.enables,
    declarations: `${tiles.declarations(at.length)}
var<workgroup> totals: array<f32, ${queries * Math.max(columns, positions)}>;
var<workgroup> part_most: array<f32, ${threads}>;
var<workgroup> part_sum: array<f32, ${threads}>;`,
    parameters: tiles.parameters,
    begin: tiles.begin,
    keep: `for (var i = index; i < ${queries * columns}u; i += ${threads}u) {
    let query = i / ${columns}u;
    let head = kv_head * of_kv + first_head + query % num_heads;
    var value = 0.0;
    if (query < num_queries && i % ${columns}u < dim) { value = ld(p.q + (first_row + query / num_heads) * p.qStride + head * dim + i % ${columns}u); }
    halves[query * ${pitch}u + i % ${columns}u] = ${tiles.half(bounded)};
  }
  let bands = (num_queries + ${m - 1}u) / ${m}u;
  let query = index / ${each}u;
  let part = index % ${each}u;
  let own = row_position(first_row + query / num_heads, sequence);`,
    attend: `workgroupBarrier();
      ${tileOf("keys", kind, tile, tiles.half(bounded))}
      workgroupBarrier();
      for (var t = subgroup; t < bands * ${positions / n}u; t += ${numSubgroups}u) {
        let band = t / ${positions / n}u * ${m}u;
        let column = t % ${positions / n}u * ${n}u;
        ${tiles.sums("dots")}
        for (var d = 0u; d < ${columns}u; d += ${k}u) {
          ${tiles.left("a", `band * ${pitch}u + d`, pitch)}
          ${tiles.right("b", `${at.tile}u + column * ${pitch}u + d`, pitch, "columns")}
          ${tiles.multiply("a", "b", "dots")}
        }
        ${tiles.store("dots", "totals", `band * ${positions}u + column`, positions)}
      }
      workgroupBarrier();
      ${tileOf("values", kind, tile, tiles.half(bounded))}
      var own_most = ${lowest};
      for (var c = part * ${run}u; c < (part + 1u) * ${run}u && query < num_queries; c++) {
        let position = at + c;
        var score = ${lowest};
        if (position <= min(own + p.ahead, context - 1u) && position >= first_seen(own)) { score = score_of(totals[query * ${positions}u + c]); }
        totals[query * ${positions}u + c] = score;
        own_most = max(own_most, score);
      }
      part_most[index] = own_most;
      workgroupBarrier();
      let before = most[query];
      var next = before;
      for (var j = 0u; j < ${each}u; j++) { next = max(next, part_most[query * ${each}u + j]); }
      var own_sum = 0.0;
      for (var c = part * ${run}u; c < (part + 1u) * ${run}u; c++) {
        var value = 0.0;
        if (query < num_queries) {
          let score = totals[query * ${positions}u + c];
          if (score > ${lowest}) { value = weight_of(score, next); }
        }
        let weight = ${tiles.half("value")};
        halves[${at.weights}u + query * ${weightPitch}u + c] = weight;
        own_sum = own_sum + f32(weight);
      }
      part_sum[index] = own_sum;
      workgroupBarrier();
      if (part == 0u) {
        let kept = weight_of(before, next);
        var total = sum[query] * kept;
        for (var j = 0u; j < ${each}u; j++) { total = total + part_sum[query * ${each}u + j]; }
        most[query] = next;
        sum[query] = total;
        factor[query] = kept;
      }
      for (var t = subgroup; t < bands * ${columns / n}u; t += ${numSubgroups}u) {
        let band = t / ${columns / n}u * ${m}u;
        let column = t % ${columns / n}u * ${n}u;
        ${tiles.sums("gathered")}
        for (var c = 0u; c < chunk; c += ${k}u) {
          ${tiles.left("a", `${at.weights}u + band * ${weightPitch}u + c`, weightPitch)}
          ${tiles.right("b", `${at.tile}u + c * ${pitch}u + column`, pitch, "rows")}
          ${tiles.multiply("a", "b", "gathered")}
        }
        ${tiles.store("gathered", "totals", `band * ${columns}u + column`, columns)}
      }
      workgroupBarrier();
      for (var e = 0u; e < ${Math.ceil((queries * valueDim) / threads)}u; e++) {
        let i = index + e * ${threads}u;
        if (i < num_queries * value_dim) { acc[e] = fma(acc[e], factor[i / value_dim], totals[i / value_dim * ${columns}u + i % value_dim]); }
      }`,
  };
}
