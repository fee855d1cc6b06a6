import { type Shader, shaderCode } from "./shader.js";

const params = {
  rowsAt: "u32",
  scores: "u32",
  scoresStride: "u32",
  weights: "u32",
  weightsStride: "u32",
  dst: "u32",
  dstStride: "u32",
  width: "u32",
  numExperts: "u32",
  topK: "u32",
  overAll: "u32",
} as const;

const threads = 64;

/** What the weight of an expert is that a row does not go to. */
export const notChosen = -1;

/**
 * A workgroup takes one row: it writes each expert's weight, `notChosen` for those outside the `topK` with the highest scores (the lower
 * index where scores are equal), and clears the row of the sum.
 */
export const routeShader: Shader = {
  key: "route",
  params,
  bindings: [],
  code: () =>
    shaderCode(
      params,
      [],
      `@compute @workgroup_size(${threads}) fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let row = group.x;
  let scores = p.scores + row * p.scoresStride;
  let weights = p.weights + row * p.weightsStride;
  for (var i = lane; i < p.width; i += ${threads}u) { st(p.dst + row * p.dstStride + i, 0.0); }
  var most = ld(scores);
  for (var e = 1u; e < p.numExperts; e++) { most = max(most, ld(scores + e)); }
  var total = 0.0;
  for (var e = 0u; e < p.numExperts; e++) {
    let score = ld(scores + e);
    if (p.overAll != 0u || rank_of(scores, e, score) < p.topK) { total = total + exp(score - most); }
  }
  for (var e = lane; e < p.numExperts; e += ${threads}u) {
    let score = ld(scores + e);
    var weight = f32(${notChosen});
    if (rank_of(scores, e, score) < p.topK) { weight = exp(score - most) / total; }
    st(weights + e, weight);
  }
}
fn rank_of(scores: u32, expert: u32, score: f32) -> u32 {
  var rank = 0u;
  for (var e = 0u; e < p.numExperts; e++) {
    let other = ld(scores + e);
    if (other > score || (other == score && e < expert)) { rank++; }
  }
  return rank;
}`,
    ),
};
