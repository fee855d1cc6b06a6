import type { Activation } from "@octavo/kernels";
import { gatedFunction } from "./activations.js";
import {
  chunkColumns,
  chunkFunction,
  columnUnit,
  formKey,
  type MatrixForm,
  numSlices,
  tileRows,
} from "./matrix-forms.js";
import { notChosen } from "./route.js";
import { type Shader, shaderCode } from "./shader.js";

/** What a linear does beside multiplying. */
export interface LinearKind {
  readonly form: MatrixForm;
  /** Whether inputs begin at, and rows have, a multiple of four floats, and columns need no padding. */
  readonly isAligned: boolean;
  /** Inputs are normalised first: each times its weight, and the sum times the row's factor. Aligned only. */
  readonly hasNorm: boolean;
  /** The matrix is gates above as many ups, a multiple of 32; what is stored is the activation of the gate times up. */
  readonly activation?: Activation | undefined;
  /** Invocations of a subgroup, where all are of one size and norms are to be summed by them. */
  readonly subgroupSize?: number | undefined;
  /** Rows have a weight: those below 0 are left alone, others are multiplied by it where the linear accumulates. */
  readonly hasMask?: boolean;
}

export const linearParams = {
  rowsAt: "u32",
  src: "u32",
  srcStride: "u32",
  to: "u32",
  toStride: "u32",
  cols: "u32",
  outRows: "u32",
  tiles: "u32",
  chunks: "u32",
  sliceChunks: "u32",
  paddedRows: "u32",
  groups: "u32",
  hasBias: "u32",
  bias: "u32",
  /** Adds to what is there. */
  accumulates: "u32",
  upTiles: "u32",
  eps: "f32",
  weightOffset: "f32",
  mask: "u32",
  maskStride: "u32",
} as const;

export const linearDeclarations = [
  "var<storage, read> codes: array<vec4<u32>>;",
  "var<storage, read> scales: array<u32>;",
  "var<storage, read> bias: array<f32>;",
  "var<storage, read> norm: array<f32>;",
];
export const linearBindings = ["read", "read", "read", "read"] as const;

const lanes = tileRows * numSlices;

export function kindKey({ form, isAligned, hasNorm, subgroupSize, activation, hasMask }: LinearKind): string {
  const normed = hasNorm ? ` normed${subgroupSize === undefined ? "" : ` by ${subgroupSize}`}` : "";
  return `${formKey(form)}${isAligned ? "" : " ragged"}${normed}${hasMask === true ? " masked" : ""} ${activation ?? ""}`;
}

/** Parameters of `main` and what keeps them, for sums by subgroups. */
function subgroupInputs({ hasNorm, subgroupSize }: LinearKind): {
  readonly parameters: string;
  readonly keep: string;
} {
  if (!hasNorm || subgroupSize === undefined) return { parameters: "", keep: "" };
  return {
    parameters: ", @builtin(subgroup_invocation_id) own_lane: u32, @builtin(subgroup_id) own_subgroup: u32",
    keep: "lane_of_subgroup = own_lane; subgroup_of_lane = own_subgroup;",
  };
}

function enablesOf({ hasNorm, subgroupSize }: LinearKind): readonly string[] {
  return hasNorm && subgroupSize !== undefined ? ["enable subgroups;"] : [];
}

/**
 * Few rows: a workgroup takes 32 outputs of `numRows` rows; lanes of one slice of the columns read neighbouring chunks. Every row's sum is
 * taken in the order that `manyRowsShader` takes too: column by column within a slice, then slice by slice.
 */
export function fewRowsShader(kind: LinearKind, numRows: number): Shader {
  return {
    key: `linear ${numRows} ${kindKey(kind)}`,
    params: linearParams,
    bindings: linearBindings,
    code: () => shaderCode(linearParams, linearDeclarations, fewRowsBody(kind, numRows), enablesOf(kind)),
  };
}

function fewRowsBody(kind: LinearKind, numRows: number): string {
  const { form, activation } = kind;
  const columns = chunkColumns(form.codes);
  const parts = activation === undefined ? [""] : ["", "up_"];
  const each = <T>(make: (row: number) => T): T[] => Array.from({ length: numRows }, (_, row) => make(row));
  return `${chunkFunction(form)}
${inputFunctions(kind)}
${activation === undefined ? "" : gatedFunction(activation)}
${epilogue(kind)}
${kind.hasNorm ? normFunction(lanes, "squares", true, kind.subgroupSize) : ""}
var<workgroup> partials: array<f32, ${numRows * lanes * parts.length}>;
var<workgroup> factors: array<f32, ${Math.max(4, numRows)}>;
@compute @workgroup_size(${tileRows}, ${numSlices}) fn main(
  @builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_id) id: vec3<u32>, @builtin(local_invocation_index) index: u32${subgroupInputs(kind).parameters}) {
  ${subgroupInputs(kind).keep}
  let lane = id.x;
  let slice = id.y;
  let tile = group.x;
  let first_row = group.y * ${numRows}u;
  let last_row = step[p.rowsAt] - 1u;
  ${maskCheck(kind, numRows)}
  ${kind.hasNorm ? `for (var r = 0u; r < ${numRows}u; r += 4u) { let f = norm_factors(first_row + r, last_row, index); if (index == 0u) { for (var j = 0u; j < 4u && r + j < ${numRows}u; j++) { factors[r + j] = f[j]; } } }` : ""}
  ${each((row) => `let x${row} = p.src + min(first_row + ${row}u, last_row) * p.srcStride;`).join("\n  ")}
  ${parts.flatMap((part) => each((row) => `var ${part}acc${row} = 0.0;`)).join("\n  ")}
  let end = min((slice + 1u) * p.sliceChunks, p.chunks);
  for (var c = slice * p.sliceChunks; c < end; c++) {
    let w = chunk(tile, lane, c);
    ${activation === undefined ? "" : "let up_w = chunk(tile + p.upTiles, lane, c);"}
    for (var v = 0u; v < ${columns / 4}u; v++) {
      let k = c * ${columns}u + v * 4u;
      ${each((row) => `let in${row} = input(x${row}, k);`).join("\n      ")}
      ${parts.flatMap((part) => each((row) => `${part}acc${row} = dot_in_order(${part}w[v], in${row}, ${part}acc${row});`)).join("\n      ")}
    }
  }
  ${parts.flatMap((part, at) => each((row) => `partials[${(at * numRows + row) * lanes}u + slice * ${tileRows}u + lane] = ${part}acc${row};`)).join("\n  ")}
  workgroupBarrier();
  let n = tile * ${tileRows}u + lane;
  for (var r = slice; r < ${numRows}u; r += ${numSlices}u) {
    if (first_row + r > last_row || n >= p.outRows) { continue; }
    ${parts.map((part, at) => `var ${part}total = 0.0;\n    for (var s = 0u; s < ${numSlices}u; s++) { ${part}total = ${part}total + partials[${at * numRows * lanes}u + r * ${lanes}u + s * ${tileRows}u + lane]; }`).join("\n    ")}
    let factor = ${kind.hasNorm ? "factors[r]" : "1.0"};
    ${activation === undefined ? "finish(first_row + r, n, finished(total, factor, n));" : `finish(first_row + r, n, gated(finished(total, factor, n), finished(up_total, factor, n + p.upTiles * ${tileRows}u)));`}
  }
}`;
}

/** Many rows: a workgroup takes 64 rows by 64 outputs through shared memory. */
export function manyRowsShader(kind: LinearKind): Shader {
  return {
    key: `linear many ${kindKey(kind)}`,
    params: linearParams,
    bindings: linearBindings,
    code: () => shaderCode(linearParams, linearDeclarations, manyRowsBody(kind), enablesOf(kind)),
  };
}

export const manyRowsTile = 64;

function manyRowsBody(kind: LinearKind): string {
  const { form, activation } = kind;
  const columns = chunkColumns(form.codes);
  const perUnit = columnUnit / columns;
  const isGated = activation !== undefined;
  const four = <T>(make: (row: number) => T): T[] => [0, 1, 2, 3].map(make);
  return `${chunkFunction(form)}
${inputFunctions(kind)}
${isGated ? gatedFunction(activation) : ""}
${epilogue(kind)}
var<workgroup> xs: array<vec4<f32>, ${columnUnit * 16}>;
var<workgroup> ws: array<vec4<f32>, ${columnUnit * 16}>;
var<workgroup> factors: array<f32, 64>;
${kind.hasNorm ? normFunction(256, "xs", false, kind.subgroupSize) : ""}
@compute @workgroup_size(256) fn main(
  @builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) index: u32${subgroupInputs(kind).parameters}) {
  ${subgroupInputs(kind).keep}
  let first_row = group.y * 64u;
  let last_row = step[p.rowsAt] - 1u;
  ${maskCheck(kind, 64)}
  let ty = index / 16u;
  let tx = index % 16u;
  let first_tile = group.x * ${isGated ? 1 : 2}u;
  ${kind.hasNorm ? "for (var r = 0u; r < 64u; r += 4u) { let f = norm_factors(first_row + r, last_row, index); if (index == 0u) { for (var j = 0u; j < 4u; j++) { factors[r + j] = f[j]; } } }" : ""}
  ${four((row) => `var acc${row} = vec4<f32>(); var total${row} = vec4<f32>();`).join("\n  ")}
  let units = p.chunks / ${perUnit}u;
  let slice_units = p.sliceChunks / ${perUnit}u;
  for (var u = 0u; u < units; u++) {
    for (var i = index; i < 512u; i += 256u) {
      let row = i / 8u;
      let k = (i % 8u) * 4u;
      let value = input(p.src + min(first_row + row, last_row) * p.srcStride, u * ${columnUnit}u + k);
      for (var j = 0u; j < 4u; j++) { xs[(k + j) * 16u + row / 4u][row % 4u] = value[j]; }
    }
    for (var i = index; i < ${64 * perUnit}u; i += 256u) {
      let n = i % 64u;
      let part = i / 64u;
      let tile = ${isGated ? "first_tile + select(0u, p.upTiles, n >= 32u)" : "min(first_tile + n / 32u, p.tiles - 1u)"};
      let w = chunk(tile, n % 32u, u * ${perUnit}u + part);
      for (var v = 0u; v < ${columns / 4}u; v++) {
        for (var j = 0u; j < 4u; j++) { ws[(part * ${columns}u + v * 4u + j) * 16u + n / 4u][n % 4u] = w[v][j]; }
      }
    }
    workgroupBarrier();
    for (var k = 0u; k < ${columnUnit}u; k++) {
      let a = xs[k * 16u + ty];
      let b = ws[k * 16u + tx];
      ${four((row) => `acc${row} = fma(b, vec4<f32>(a.${"xyzw"[row]}), acc${row});`).join("\n      ")}
    }
    workgroupBarrier();
    if ((u + 1u) % slice_units == 0u || u + 1u == units) {
      ${four((row) => `total${row} = total${row} + acc${row}; acc${row} = vec4<f32>();`).join("\n      ")}
    }
  }
  let totals = array<vec4<f32>, 4>(${four((row) => `total${row}`).join(", ")});
  ${isGated ? gatedEnd : plainEnd}
}`;
}

const plainEnd = `for (var r = 0u; r < 4u; r++) {
    let row = first_row + ty * 4u + r;
    for (var j = 0u; j < 4u; j++) {
      let n = first_tile * 32u + tx * 4u + j;
      if (row <= last_row && n < p.outRows) { finish(row, n, finished(totals[r][j], factors[ty * 4u + r], n)); }
    }
  }`;

const gatedEnd = `if (tx >= 8u) {
    for (var r = 0u; r < 4u; r++) { xs[(ty * 4u + r) * 8u + tx - 8u] = totals[r]; }
  }
  workgroupBarrier();
  if (tx >= 8u) { return; }
  for (var r = 0u; r < 4u; r++) {
    let row = first_row + ty * 4u + r;
    let ups = xs[(ty * 4u + r) * 8u + tx];
    let factor = factors[ty * 4u + r];
    for (var j = 0u; j < 4u; j++) {
      let n = first_tile * 32u + tx * 4u + j;
      if (row > last_row || n >= p.outRows) { continue; }
      finish(row, n, gated(finished(totals[r][j], factor, n), finished(ups[j], factor, n + p.upTiles * 32u)));
    }
  }`;

export function inputFunctions({ isAligned, hasNorm }: LinearKind): string {
  const read = isAligned
    ? "return ld4(x + k);"
    : `var value = vec4<f32>();
  for (var j = 0u; j < 4u; j++) { if (k + j < p.cols) { value[j] = ld(x + k + j); } }
  return value;`;
  const normed =
    "let g = vec4<f32>(norm[k], norm[k + 1u], norm[k + 2u], norm[k + 3u]) + vec4<f32>(p.weightOffset); return ld4(x + k) * g;";
  return `fn ld4(at: u32) -> vec4<f32> { return arena[at >> 2u]; }
fn input(x: u32, k: u32) -> vec4<f32> { ${hasNorm ? normed : read} }
fn dot_in_order(w: vec4<f32>, x: vec4<f32>, sum: f32) -> f32 {
  return fma(w.w, x.w, fma(w.z, x.z, fma(w.y, x.y, fma(w.x, x.x, sum))));
}`;
}

/** Ends a workgroup that has no row to compute. */
function maskCheck({ hasMask }: LinearKind, numRows: number): string {
  if (hasMask !== true) return "";
  return `if (index == 0u) {
    is_needed = 0u;
    for (var r = first_row; r < first_row + ${numRows}u && r <= last_row; r++) {
      if (ld(p.mask + r * p.maskStride) != f32(${notChosen})) { is_needed = 1u; }
    }
  }
  if (workgroupUniformLoad(&is_needed) == 0u) { return; }`;
}

export function epilogue({ hasNorm, hasMask }: LinearKind): string {
  const weighs = hasMask === true;
  return `${weighs ? "var<workgroup> is_needed: u32;" : ""}
fn finished(total: f32, factor: f32, n: u32) -> f32 {
  var added = 0.0;
  if (p.hasBias != 0u) { added = bias[p.bias + n]; }
  return ${hasNorm ? "fma(total, factor, added)" : "total + added"};
}
fn finish(row: u32, n: u32, value: f32) {
  let at = p.to + row * p.toStride + n;
  ${weighs ? `let weight = ld(p.mask + row * p.maskStride);\n  if (weight == f32(${notChosen})) { return; }` : ""}
  if (p.accumulates != 0u) { st(at, ${weighs ? "fma(value, weight, ld(at))" : "ld(at) + value"}); } else { st(at, value); }
}`;
}

/**
 * 1 / root mean square of four rows, summed in one order in every kernel: neighbours first, then pairs of neighbours. Subgroups, where all are
 * of one size, exchange what lies within them without memory and barriers, in the same order.
 */
export function normFunction(
  threads: number,
  memory: string,
  declares: boolean,
  subgroupSize: number | undefined,
): string {
  const within = subgroupSize ?? 1;
  const strides = (from: number, to: number): number[] => {
    const all: number[] = [];
    for (let stride = from; stride < to; stride *= 2) all.push(stride);
    return all;
  };
  return `${subgroupSize === undefined ? "" : "var<private> lane_of_subgroup: u32; var<private> subgroup_of_lane: u32;"}
${declares ? `var<workgroup> ${memory}: array<vec4<f32>, ${threads}>;` : ""}
fn norm_factors(row: u32, last_row: u32, index: u32) -> vec4<f32> {
  let at = vec4<u32>(p.src) + min(vec4<u32>(row) + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(last_row)) * p.srcStride;
  var sums = vec4<f32>();
  for (var i = index * 4u; i < p.cols; i += ${threads * 4}u) {
    for (var r = 0u; r < 4u; r++) { let x = ld4(at[r] + i); sums[r] = dot_in_order(x, x, sums[r]); }
  }
  ${strides(1, within)
    .map((stride) => `sums = sums + subgroupShuffleXor(sums, ${stride}u);`)
    .join("\n  ")}
  ${subgroupSize === undefined ? `${memory}[index] = sums;` : `if (lane_of_subgroup == 0u) { ${memory}[subgroup_of_lane] = sums; }`}
  ${strides(1, threads / within)
    .map(
      (stride) => `workgroupBarrier();
  if (index < ${threads / within / (2 * stride)}u) { ${memory}[index * ${2 * stride}u] = ${memory}[index * ${2 * stride}u] + ${memory}[index * ${2 * stride}u + ${stride}u]; }`,
    )
    .join("\n  ")}
  workgroupBarrier();
  let total = ${memory}[0];
  workgroupBarrier();
  return vec4<f32>(1.0) / sqrt(total / f32(p.cols) + vec4<f32>(p.eps));
}`;
}

const embeddingParams = {
  ...linearParams,
  firstRow: "u32",
  index: "u32",
  offset: "u32",
  scale: "f32",
} as const;

/** Rows of a matrix by token id, or by another number of a token; a thread takes a chunk. `rows` of the matrix from `firstRow` on are bound. */
export function embeddingShader(form: MatrixForm): Shader {
  const columns = chunkColumns(form.codes);
  return {
    key: `embedding ${formKey(form)}`,
    params: embeddingParams,
    bindings: linearBindings,
    code: () =>
      shaderCode(
        embeddingParams,
        linearDeclarations,
        `${chunkFunction(form)}
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let index = id.x;
  let token = step_at(p.index, id.y) + p.offset;
  if (index >= p.chunks || token < p.firstRow || token >= p.firstRow + p.outRows) { return; }
  let n = token - p.firstRow;
  let w = chunk(n / ${tileRows}u, n % ${tileRows}u, index);
  let to = p.to + id.y * p.toStride;
  for (var v = 0u; v < ${columns / 4}u; v++) {
    for (var j = 0u; j < 4u; j++) {
      let k = index * ${columns}u + v * 4u + j;
      if (k < p.cols) { st(to + k, w[v][j] * p.scale); }
    }
  }
}`,
      ),
  };
}
