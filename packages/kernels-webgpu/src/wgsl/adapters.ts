import { chunkColumns, chunkFunction, formKey, type MatrixForm, tileRows } from "./matrix-forms.js";
import { type Shader, shaderCode } from "./shader.js";

const params = {
  adapter: "u32",
  src: "u32",
  srcStride: "u32",
  dst: "u32",
  dstStride: "u32",
  cols: "u32",
  outRows: "u32",
  chunks: "u32",
  paddedRows: "u32",
  groups: "u32",
  scale: "f32",
} as const;

const declarations = [
  "var<storage, read> codes: array<vec4<u32>>;",
  "var<storage, read> scales: array<u32>;",
];

const threads = 64;

/** low = down * x, of rows under the adapter; a workgroup takes one row of `down` (x) and one token (y). */
export function adapterDownShader(form: MatrixForm): Shader {
  const columns = chunkColumns(form.codes);
  return {
    key: `adapter down ${formKey(form)}`,
    params,
    bindings: ["read", "read"],
    code: () =>
      shaderCode(
        params,
        declarations,
        `${chunkFunction(form)}
var<workgroup> partials: array<f32, ${threads}>;
@compute @workgroup_size(${threads}) fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  if (step_at(at_rowAdapters, group.y) != p.adapter) { return; }
  let x = p.src + group.y * p.srcStride;
  var sum = 0.0;
  for (var c = lane; c < p.chunks; c += ${threads}u) {
    let w = chunk(group.x / ${tileRows}u, group.x % ${tileRows}u, c);
    for (var v = 0u; v < ${columns / 4}u; v++) {
      for (var j = 0u; j < 4u; j++) {
        let k = c * ${columns}u + v * 4u + j;
        if (k < p.cols) { sum = fma(w[v][j], ld(x + k), sum); }
      }
    }
  }
  partials[lane] = sum;
  for (var half = ${threads / 2}u; half > 0u; half >>= 1u) {
    workgroupBarrier();
    if (lane < half) { partials[lane] = partials[lane] + partials[lane + half]; }
  }
  if (lane == 0u) { st(p.dst + group.y * p.dstStride + group.x, partials[0]); }
}`,
      ),
  };
}

/** out += scale * up * low, of rows under the adapter; a thread takes one output of one token. */
export function adapterUpShader(form: MatrixForm): Shader {
  const columns = chunkColumns(form.codes);
  return {
    key: `adapter up ${formKey(form)}`,
    params,
    bindings: ["read", "read"],
    code: () =>
      shaderCode(
        params,
        declarations,
        `${chunkFunction(form)}
@compute @workgroup_size(${threads}) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x >= p.outRows || step_at(at_rowAdapters, id.y) != p.adapter) { return; }
  let low = p.src + id.y * p.srcStride;
  var sum = 0.0;
  for (var c = 0u; c < p.chunks; c++) {
    let w = chunk(id.x / ${tileRows}u, id.x % ${tileRows}u, c);
    for (var v = 0u; v < ${columns / 4}u; v++) {
      for (var j = 0u; j < 4u; j++) {
        let k = c * ${columns}u + v * 4u + j;
        if (k < p.cols) { sum = fma(w[v][j], ld(low + k), sum); }
      }
    }
  }
  let at = p.dst + id.y * p.dstStride + id.x;
  st(at, fma(sum, p.scale, ld(at)));
}`,
      ),
  };
}
