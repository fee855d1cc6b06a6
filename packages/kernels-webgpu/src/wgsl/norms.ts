import { type Shader, shaderCode } from "./shader.js";

const threads = 64;

/** Sums `partial` over the workgroup in one order, whatever else the step holds. */
const sumFunction = `
var<workgroup> partials: array<f32, ${threads}>;
fn sum_of(partial: f32, lane: u32) -> f32 {
  partials[lane] = partial;
  for (var half = ${threads / 2}u; half > 0u; half >>= 1u) {
    workgroupBarrier();
    if (lane < half) { partials[lane] = partials[lane] + partials[lane + half]; }
  }
  workgroupBarrier();
  let sum = partials[0];
  workgroupBarrier();
  return sum;
}`;

const params = {
  rowsAt: "u32",
  width: "u32",
  src: "u32",
  srcStride: "u32",
  to: "u32",
  toStride: "u32",
  residual: "u32",
  residualStride: "u32",
  hasResidual: "u32",
  hasBias: "u32",
  /** The weight is not one group's but all columns'. */
  isWhole: "u32",
  eps: "f32",
  weightOffset: "f32",
} as const;

/** A workgroup normalises one group of `width` columns of one row. */
function normShader(key: string, body: string, bindings: readonly string[]): Shader {
  return {
    key,
    params,
    bindings: bindings.map(() => "read" as const),
    code: () =>
      shaderCode(
        params,
        bindings.map((name) => `var<storage, read> ${name}: array<f32>;`),
        `${sumFunction}
@compute @workgroup_size(${threads}) fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let row = group.y;
  let first = group.x * p.width;
  let given = p.src + row * p.srcStride + first;
  let to = p.to + row * p.toStride + first;
  var src = given;
  if (p.hasResidual != 0u) {
    src = p.residual + row * p.residualStride + first;
    for (var i = lane; i < p.width; i += ${threads}u) { st(src + i, ld(src + i) + ld(given + i)); }
  }
  ${body}
}`,
      ),
  };
}

export const rmsNormShader = normShader(
  "rms_norm",
  `var partial = 0.0;
  for (var i = lane; i < p.width; i += ${threads}u) { let x = ld(src + i); partial = fma(x, x, partial); }
  let factor = 1.0 / sqrt(sum_of(partial, lane) / f32(p.width) + p.eps);
  for (var i = lane; i < p.width; i += ${threads}u) { st(to + i, ld(src + i) * factor * (weight[p.isWhole * first + i] + p.weightOffset)); }`,
  ["weight"],
);

export const layerNormShader = normShader(
  "layer_norm",
  `var partial = 0.0;
  for (var i = lane; i < p.width; i += ${threads}u) { partial += ld(src + i); }
  let mean = sum_of(partial, lane) / f32(p.width);
  partial = 0.0;
  for (var i = lane; i < p.width; i += ${threads}u) { let x = ld(src + i) - mean; partial = fma(x, x, partial); }
  let factor = 1.0 / sqrt(sum_of(partial, lane) / f32(p.width) + p.eps);
  for (var i = lane; i < p.width; i += ${threads}u) {
    var added = 0.0;
    if (p.hasBias != 0u) { added = bias[i]; }
    st(to + i, fma((ld(src + i) - mean) * factor, weight[i], added));
  }`,
  ["weight", "bias"],
);

/** Values of E4M3 times one scale a group: steps of an eighth of their power of two, of 2^-9 below 2^-6. */
export const roundE4m3Shader: Shader = {
  key: "round_e4m3",
  params: {
    rowsAt: "u32",
    width: "u32",
    total: "u32",
    src: "u32",
    srcStride: "u32",
    to: "u32",
    toStride: "u32",
  },
  bindings: [],
  code: () =>
    shaderCode(
      roundE4m3Shader.params,
      [],
      `
var<workgroup> largest: array<f32, ${threads}>;
@compute @workgroup_size(${threads}) fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let first = group.x * p.width;
  let last = min(first + p.width, p.total);
  let src = p.src + group.y * p.srcStride;
  let to = p.to + group.y * p.toStride;
  var most = 0.0;
  for (var i = first + lane; i < last; i += ${threads}u) { most = max(most, abs(ld(src + i))); }
  largest[lane] = most;
  for (var half = ${threads / 2}u; half > 0u; half >>= 1u) {
    workgroupBarrier();
    if (lane < half) { largest[lane] = max(largest[lane], largest[lane + half]); }
  }
  workgroupBarrier();
  let scale = largest[0] / 448.0;
  for (var i = first + lane; i < last; i += ${threads}u) {
    var value = 0.0;
    if (scale > 0.0) { value = ld(src + i) / scale; }
    let exponent = max(i32((bitcast<u32>(value) >> 23u) & 255u) - 127, -6);
    let unit = bitcast<f32>(u32(exponent - 3 + 127) << 23u);
    st(to + i, clamp(round(value / unit) * unit, -448.0, 448.0) * scale);
  }
}`,
    ),
};
