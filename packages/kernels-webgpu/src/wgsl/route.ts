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
  isSigmoid: "u32",
  hasBias: "u32",
  groups: "u32",
  chosenGroups: "u32",
  counted: "u32",
  weightScale: "f32",
  hasScales: "u32",
} as const;

const threads = 64;

/** What the weight of an expert is that a row does not go to; no other weight is. */
export const notChosen = -1e38;
/** Experts that a mixture may have. */
export const mostExperts = 1024;

/**
 * A workgroup takes one row: it writes each expert's weight, `notChosen` for those outside the `topK` (the lower index where ranks are equal), and
 * clears the row of the sum. Softmaxes order experts as their scores do.
 */
export const routeShader: Shader = {
  key: "route",
  params,
  bindings: ["read", "read"],
  code: () =>
    shaderCode(
      params,
      ["var<storage, read> bias: array<f32>;", "var<storage, read> scales: array<f32>;"],
      `const absent = -3.0e38;
var<workgroup> shares: array<f32, ${mostExperts}>;
var<workgroup> ranks: array<f32, ${mostExperts}>;
@compute @workgroup_size(${threads}) fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let row = group.x;
  let scores = p.scores + row * p.scoresStride;
  let weights = p.weights + row * p.weightsStride;
  for (var i = lane; i < p.width; i += ${threads}u) { st(p.dst + row * p.dstStride + i, 0.0); }
  var most = ld(scores);
  for (var e = 1u; e < p.numExperts; e++) { most = max(most, ld(scores + e)); }
  var all = 0.0;
  for (var e = 0u; e < p.numExperts; e++) { all = all + exp(ld(scores + e) - most); }
  for (var e = lane; e < p.numExperts; e += ${threads}u) {
    let score = ld(scores + e);
    shares[e] = select(exp(score - most), 1.0 / (1.0 + exp(min(-score, 88.0))), p.isSigmoid != 0u);
    ranks[e] = score;
    if (p.hasBias != 0u || p.groups != 0u) { ranks[e] = select(shares[e] / all, shares[e], p.isSigmoid != 0u); }
    if (p.hasBias != 0u) { ranks[e] = ranks[e] + bias[e]; }
  }
  workgroupBarrier();
  if (p.groups != 0u) {
    var kept: array<bool, ${mostExperts / threads}>;
    for (var e = lane; e < p.numExperts; e += ${threads}u) { kept[e / ${threads}u] = is_group_chosen(e / (p.numExperts / p.groups)); }
    workgroupBarrier();
    for (var e = lane; e < p.numExperts; e += ${threads}u) { if (!kept[e / ${threads}u]) { ranks[e] = absent; } }
    workgroupBarrier();
  }
  var total = 0.0;
  for (var e = 0u; e < p.numExperts; e++) { if (p.overAll != 0u || is_chosen(e)) { total = total + shares[e]; } }
  if (p.isSigmoid != 0u && p.overAll != 0u) { total = 1.0; }
  for (var e = lane; e < p.numExperts; e += ${threads}u) {
    var weight = f32(${notChosen});
    if (is_chosen(e)) {
      weight = shares[e] / total * p.weightScale;
      if (p.hasScales != 0u) { weight = weight * scales[e]; }
    }
    st(weights + e, weight);
  }
}
fn is_chosen(expert: u32) -> bool {
  if (ranks[expert] == absent) { return false; }
  var before = 0u;
  for (var e = 0u; e < p.numExperts; e++) {
    if (ranks[e] > ranks[expert] || (ranks[e] == ranks[expert] && e < expert)) { before++; }
  }
  return before < p.topK;
}
/** Score of a group by its best expert, or by its best two. */
fn group_rank(group: u32) -> f32 {
  let size = p.numExperts / p.groups;
  var best = absent;
  var next = absent;
  for (var e = group * size; e < (group + 1u) * size; e++) {
    if (ranks[e] > best) { next = best; best = ranks[e]; } else { next = max(next, ranks[e]); }
  }
  return select(best, best + next, p.counted == 2u && size > 1u);
}
fn is_group_chosen(group: u32) -> bool {
  let own = group_rank(group);
  var before = 0u;
  for (var g = 0u; g < p.groups; g++) {
    let other = group_rank(g);
    if (other > own || (other == own && g < group)) { before++; }
  }
  return before < p.chosenGroups;
}`,
    ),
};
