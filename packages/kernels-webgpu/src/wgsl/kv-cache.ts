import type { KvDtype } from "@octavo/kernels";
import { headerWords, type Shader, shaderCode } from "./shader.js";

/** Words of one token's key, or value, of one kv head: its elements and, in an int8 cache, their scale. */
export function kvHeadWords(dtype: KvDtype, headDim: number): number {
  switch (dtype) {
    case "f32":
      return headDim;
    case "f16":
    case "bf16":
      return headDim / 2;
    case "int8":
      return Math.ceil(headDim / 4) + 1;
  }
}

const bf16Bits = `
fn bf16_bits(value: f32) -> u32 {
  let bits = bitcast<u32>(value);
  return (bits + 0x7fffu + ((bits >> 16u) & 1u)) >> 16u;
}`;

/** `value_at(head, d)`: element d of the head whose words begin at `head` of `cache`. */
export function kvReader(dtype: KvDtype, headDim: number, cache: string): string {
  const head = `fn ${cache}_at(head: u32, d: u32) -> f32 {`;
  switch (dtype) {
    case "f32":
      return `${head} return bitcast<f32>(${cache}[head + d]); }`;
    case "f16":
      return `${head} return unpack2x16float(${cache}[head + d / 2u])[d & 1u]; }`;
    case "bf16":
      return `${head} return bitcast<f32>(select(${cache}[head + d / 2u] << 16u, ${cache}[head + d / 2u] & 0xffff0000u, (d & 1u) == 1u)); }`;
    case "int8":
      return `${head}
  let code = extractBits(bitcast<i32>(${cache}[head + d / 4u]), (d & 3u) * 8u, 8u);
  return bitcast<f32>(${cache}[head + ${kvHeadWords(dtype, headDim) - 1}u]) * f32(code);
}`;
  }
}

/** Expression for word `i` of `row`, as the cache stores it in shared memory. */
const wordOf: Readonly<Record<KvDtype, string>> = {
  f32: "bitcast<u32>(row[i])",
  f16: "pack2x16float(vec2<f32>(row[2u * i], row[2u * i + 1u]))",
  bf16: "bf16_bits(row[2u * i]) | (bf16_bits(row[2u * i + 1u]) << 16u)",
  int8: "select(codes_of(i), bitcast<u32>(most / 127.0), i == p.words - 1u)",
};

const storeParams = {
  rowsAt: "u32",
  words: "u32",
  numHeads: "u32",
  numKvHeads: "u32",
  q: "u32",
  qStride: "u32",
  k: "u32",
  kStride: "u32",
  v: "u32",
  vStride: "u32",
  pairs: "u32",
  table: "u32",
  isNeox: "u32",
  hasQNorm: "u32",
  hasKNorm: "u32",
  qEps: "f32",
  kEps: "f32",
  qOffset: "f32",
  kOffset: "f32",
} as const;

const threads = 64;

/**
 * A workgroup takes one head of one token: heads of queries first (none where nothing happens to them), then those of keys, then those of
 * values. Queries and keys are normalised and turned where that is asked for; keys and values go to the cache.
 */
export function kvStoreShader(dtype: KvDtype, headDim: number): Shader {
  const padded = Math.ceil(headDim / 4) * 4;
  return {
    key: `kv store ${dtype} ${headDim}`,
    params: storeParams,
    bindings: ["write", "write", "read", "read"],
    code: () =>
      shaderCode(
        storeParams,
        [
          "var<storage, read_write> keys: array<u32>;",
          "var<storage, read_write> values: array<u32>;",
          "var<storage, read> q_weight: array<f32>;",
          "var<storage, read> k_weight: array<f32>;",
        ],
        `${bf16Bits}
const dim = ${headDim}u;
var<workgroup> row: array<f32, ${padded}>;
var<workgroup> partials: array<f32, ${threads}>;
var<private> most: f32;
fn codes_of(i: u32) -> u32 {
  var word = 0u;
  for (var j = 0u; j < 4u; j++) {
    var code = 0;
    if (most > 0.0) { code = i32(round(row[min(4u * i + j, ${padded - 1}u)] * (127.0 / most))); }
    word |= (bitcast<u32>(clamp(code, -127, 127)) & 255u) << (8u * j);
  }
  return word;
}
fn turn(token: u32, lane: u32) {
  let table = step[${headerWords}u + p.table] + token * 2u * p.pairs;
  for (var pair = lane; pair < p.pairs; pair += ${threads}u) {
    let c = bitcast<f32>(step[table + pair]);
    let s = bitcast<f32>(step[table + p.pairs + pair]);
    let left = select(2u * pair, pair, p.isNeox != 0u);
    let right = select(left + 1u, left + p.pairs, p.isNeox != 0u);
    let x = row[left];
    let y = row[right];
    row[left] = fma(x, c, -y * s);
    row[right] = fma(y, c, x * s);
  }
}
@compute @workgroup_size(${threads}) fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let token = group.y;
  let is_query = group.x < p.numHeads;
  let is_key = !is_query && group.x < p.numHeads + p.numKvHeads;
  var head = group.x;
  var at = p.q + token * p.qStride;
  if (is_key) { head -= p.numHeads; at = p.k + token * p.kStride; }
  if (!is_query && !is_key) { head -= p.numHeads + p.numKvHeads; at = p.v + token * p.vStride; }
  at += head * dim;
  for (var i = lane; i < ${padded}u; i += ${threads}u) { row[i] = 0.0; if (i < dim) { row[i] = ld(at + i); } }
  workgroupBarrier();
  if ((is_query && p.hasQNorm != 0u) || (is_key && p.hasKNorm != 0u)) {
    var partial = 0.0;
    for (var i = lane; i < dim; i += ${threads}u) { partial = fma(row[i], row[i], partial); }
    partials[lane] = partial;
    for (var half = ${threads / 2}u; half > 0u; half >>= 1u) {
      workgroupBarrier();
      if (lane < half) { partials[lane] = partials[lane] + partials[lane + half]; }
    }
    workgroupBarrier();
    let factor = 1.0 / sqrt(partials[0] / f32(dim) + select(p.kEps, p.qEps, is_query));
    for (var i = lane; i < dim; i += ${threads}u) {
      var weight = 0.0;
      if (is_query) { weight = q_weight[i] + p.qOffset; } else { weight = k_weight[i] + p.kOffset; }
      row[i] = row[i] * factor * weight;
    }
    workgroupBarrier();
  }
  if (p.pairs > 0u && (is_query || is_key)) { turn(token, lane); }
  workgroupBarrier();
  if (is_query) {
    for (var i = lane; i < dim; i += ${threads}u) { st(at + i, row[i]); }
    return;
  }
  ${dtype === "int8" ? largest(headDim) : ""}
  let to = (step_at(at_slots, token) * p.numKvHeads + head) * p.words;
  for (var i = lane; i < p.words; i += ${threads}u) {
    let word = ${wordOf[dtype]};
    if (is_key) { keys[to + i] = word; } else { values[to + i] = word; }
  }
}`,
      ),
  };
}

function largest(headDim: number): string {
  return `var own = 0.0;
  for (var i = lane; i < ${headDim}u; i += ${threads}u) { own = max(own, abs(row[i])); }
  partials[lane] = own;
  for (var half = ${threads / 2}u; half > 0u; half >>= 1u) {
    workgroupBarrier();
    if (lane < half) { partials[lane] = max(partials[lane], partials[lane + half]); }
  }
  workgroupBarrier();
  most = partials[0];`;
}
