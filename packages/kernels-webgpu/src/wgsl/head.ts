import { type Shader, shaderCode } from "./shader.js";

const params = {
  rowsAt: "u32",
  vocab: "u32",
  logits: "u32",
  stride: "u32",
  firstRow: "u32",
  scale: "f32",
  softCap: "f32",
} as const;

/** Words of a row's result. */
export const resultWords = 4;

const threads = 256;

/**
 * A workgroup finishes one row of logits in place and writes the most likely token, the lowest among equals, whether a logit is not finite,
 * and the largest.
 */
export const headShader: Shader = {
  key: "head",
  params,
  bindings: ["write"],
  code: () =>
    shaderCode(
      params,
      ["var<storage, read_write> results: array<u32>;"],
      `
var<workgroup> best: array<f32, ${threads}>;
var<workgroup> best_id: array<u32, ${threads}>;
var<workgroup> bad: array<u32, ${threads}>;
@compute @workgroup_size(${threads}) fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let row = p.logits + group.x * p.stride;
  var most = -3.4028234e38;
  var id = 0xffffffffu;
  var is_bad = 0u;
  for (var i = lane; i < p.vocab; i += ${threads}u) {
    var value = ld(row + i) * p.scale;
    if (p.softCap != 0.0) { value = p.softCap * tanh(clamp(value / p.softCap, -15.0, 15.0)); }
    st(row + i, value);
    if ((bitcast<u32>(value) & 0x7f800000u) == 0x7f800000u) { is_bad = 1u; }
    if (id == 0xffffffffu || value > most) { most = value; id = i; }
  }
  best[lane] = most;
  best_id[lane] = id;
  bad[lane] = is_bad;
  for (var half = ${threads / 2}u; half > 0u; half >>= 1u) {
    workgroupBarrier();
    if (lane < half) {
      let other = lane + half;
      if (best[other] > best[lane] || (best[other] == best[lane] && best_id[other] < best_id[lane])) {
        best[lane] = best[other];
        best_id[lane] = best_id[other];
      }
      bad[lane] = bad[lane] | bad[other];
    }
  }
  if (lane == 0u) {
    let to = (p.firstRow + group.x) * ${resultWords}u;
    results[to] = best_id[0];
    results[to + 1u] = bad[0];
    results[to + 2u] = bitcast<u32>(best[0]);
  }
}`,
    ),
};
