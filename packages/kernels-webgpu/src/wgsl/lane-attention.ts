import { type AttentionKind, type ChunkCode, lowest, tileOf } from "./attention.js";

const threads = 128;

/** Positions that a workgroup takes from the cache at a time. */
function chunkPositions(headDim: number): number {
  return headDim > 256 ? 8 : 16;
}

export function queriesAtOnce(headDim: number): number {
  return headDim > 256 ? 4 : headDim > 128 ? 8 : 16;
}

/** Memory that a workgroup shares, nearly all of it for queries and a chunk of keys or values. */
export function attentionBytes(headDim: number): number {
  const [queries, chunk] = [queriesAtOnce(headDim), chunkPositions(headDim)];
  return 4 * (queries * (headDim + chunk + 8) + chunk * (headDim + 1));
}

/** Attention by any device: a thread sums up a query's score for a position, then a column of a query's values. */
export function laneChunks(kind: AttentionKind): ChunkCode {
  const { headDim, valueDim, hasValues } = kind;
  const [queries, positions] = [queriesAtOnce(headDim), chunkPositions(headDim)];
  const tile = { to: "tile[", columns: headDim, pitch: headDim + 1, threads };
  return {
    key: "by lanes",
    threads,
    queries,
    positions,
    enables: [],
    declarations: `var<workgroup> q: array<f32, ${queries * headDim}>;
var<workgroup> tile: array<f32, ${positions * (headDim + 1)}>;
var<workgroup> scores: array<f32, ${queries * positions}>;`,
    parameters: "",
    begin: "",
    keep: `for (var i = index; i < num_queries * dim; i += ${threads}u) {
    let query = i / dim;
    let head = kv_head * of_kv + first_head + query % num_heads;
    q[i] = ld(p.q + (first_row + query / num_heads) * p.qStride + head * dim + i % dim);
  }`,
    attend: `workgroupBarrier();
      ${tileOf("keys", kind, tile, "value")}
      workgroupBarrier();
      for (var i = index; i < num_queries * chunk; i += ${threads}u) {
        let query = i / chunk;
        let position = at + i % chunk;
        let own = row_position(first_row + query / num_heads, sequence);
        var score = ${lowest};
        if (position <= min(own + p.ahead, context - 1u) && position >= first_seen(own)) {
          var dot = 0.0;
          for (var d = 0u; d < dim; d++) { dot = fma(q[query * dim + d], tile[i % chunk * (dim + 1u) + d], dot); }
          score = score_of(dot);
        }
        scores[i] = score;
      }
      workgroupBarrier();
      ${hasValues ? tileOf("values", kind, tile, "value") : ""}
      if (index < num_queries) {
        var next = most[index];
        for (var c = 0u; c < chunk; c++) { next = max(next, scores[index * chunk + c]); }
        let before = weight_of(most[index], next);
        var total = sum[index] * before;
        for (var c = 0u; c < chunk; c++) {
          let score = scores[index * chunk + c];
          var weight = 0.0;
          if (score > ${lowest}) { weight = weight_of(score, next); }
          scores[index * chunk + c] = weight;
          total = total + weight;
        }
        most[index] = next;
        sum[index] = total;
        factor[index] = before;
      }
      workgroupBarrier();
      for (var e = 0u; e < ${Math.ceil((queries * valueDim) / threads)}u; e++) {
        let i = index + e * ${threads}u;
        if (i < num_queries * value_dim) {
          let query = i / value_dim;
          let column = dim - value_dim + i % value_dim;
          var value = acc[e] * factor[query];
          for (var c = 0u; c < chunk; c++) { value = fma(scores[query * chunk + c], tile[c * (dim + 1u) + column], value); }
          acc[e] = value;
        }
      }`,
  };
}
