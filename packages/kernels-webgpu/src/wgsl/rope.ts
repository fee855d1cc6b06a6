import { headerWords, type Shader, shaderCode } from "./shader.js";

const params = {
  rowsAt: "u32",
  on: "u32",
  onStride: "u32",
  headDim: "u32",
  pairs: "u32",
  total: "u32",
  table: "u32",
  isNeox: "u32",
} as const;

/** A thread turns one pair of one row. The step holds cosines, then sines, of every row's pairs. */
export const ropeShader: Shader = {
  key: "rope",
  params,
  bindings: [],
  code: () =>
    shaderCode(
      params,
      [],
      `@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let row = id.y;
  if (id.x >= p.total) { return; }
  let pair = id.x % p.pairs;
  let head = p.on + row * p.onStride + id.x / p.pairs * p.headDim;
  let table = step[${headerWords}u + p.table] + row * 2u * p.pairs;
  let c = bitcast<f32>(step[table + pair]);
  let s = bitcast<f32>(step[table + p.pairs + pair]);
  let left = head + select(2u * pair, pair, p.isNeox != 0u);
  let right = select(left + 1u, left + p.pairs, p.isNeox != 0u);
  let x = ld(left);
  let y = ld(right);
  st(left, fma(x, c, -y * s));
  st(right, fma(y, c, x * s));
}`,
    ),
};
