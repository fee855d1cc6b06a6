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
import {
  inputFunctions,
  type LinearKind,
  normedRows,
  normFunctions,
  postOf,
  subgroupInputs,
} from "./linear-inputs.js";
import { notChosen } from "./route.js";
import { type Shader, shaderCode } from "./shader.js";

const linearParams = {
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

const linearDeclarations = [
  "var<storage, read> codes: array<vec4<u32>>;",
  "var<storage, read> scales: array<u32>;",
  "var<storage, read> bias: array<f32>;",
  "var<storage, read> norm: array<f32>;",
];
const linearBindings = ["read", "read", "read", "read"] as const;

/** Further ones where a block's output is added first. The places are as far from `src`, in rows of the same stride. */
const postParams = { update: "u32", stream: "u32", postEps: "f32", postOffset: "f32" } as const;

/** What a linear's shader begins with, and how its buffers are bound. */
export function linearInterface({ hasPost = false }: Pick<LinearKind, "hasPost">): {
  readonly params: Shader["params"];
  readonly declarations: readonly string[];
  readonly bindings: Shader["bindings"];
} {
  if (!hasPost) return { params: linearParams, declarations: linearDeclarations, bindings: linearBindings };
  return {
    params: { ...linearParams, ...postParams },
    declarations: [...linearDeclarations, "var<storage, read> post: array<f32>;"],
    bindings: [...linearBindings, "read"],
  };
}

const lanes = tileRows * numSlices;

export function kindKey(kind: LinearKind): string {
  const { form, isAligned, hasNorm, hasPost, subgroupSize, activation, weighs } = kind;
  const normed = hasNorm
    ? ` ${hasPost === true ? "twice " : ""}normed${subgroupSize === undefined ? "" : ` by ${subgroupSize}`}`
    : "";
  return `${formKey(form)}${isAligned ? "" : " ragged"}${normed}${weighs === undefined ? "" : ` weighing ${weighs}`} ${activation ?? ""}`;
}

export function enablesOf({ hasNorm, subgroupSize }: LinearKind): readonly string[] {
  return hasNorm && subgroupSize !== undefined ? ["enable subgroups;"] : [];
}

/**
 * Few rows: a workgroup takes 32 outputs of `numRows` rows; lanes of one slice of the columns read neighbouring chunks. Every row's sum is
 * taken in the order that `manyRowsShader` takes too: column by column within a slice, then slice by slice.
 */
export function fewRowsShader(kind: LinearKind, numRows: number): Shader {
  const { params, bindings, declarations } = linearInterface(kind);
  return {
    key: `linear ${numRows} ${kindKey(kind)}`,
    params,
    bindings,
    code: () => shaderCode(params, declarations, fewRowsBody(kind, numRows), enablesOf(kind)),
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
${normFunctions(kind, { threads: lanes, memory: "squares", declares: true, numRows })}
var<workgroup> partials: array<f32, ${numRows * lanes * parts.length}>;
@compute @workgroup_size(${tileRows}, ${numSlices}) fn main(
  @builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_id) id: vec3<u32>, @builtin(local_invocation_index) index: u32${subgroupInputs(kind).parameters}) {
  ${subgroupInputs(kind).keep}
  let lane = id.x;
  let slice = id.y;
  let tile = group.x;
  let first_row = group.y * ${numRows}u;
  let last_row = step[p.rowsAt] - 1u;
  ${maskCheck(kind, numRows)}
  ${normedRows(kind, { threads: lanes, numRows })}
  ${each((row) => `let x${row} = p.src + min(first_row + ${row}u, last_row) * p.srcStride; let post${row} = ${postOf(kind, `${row}u`)};`).join("\n  ")}
  ${parts.flatMap((part) => each((row) => `var ${part}acc${row} = 0.0;`)).join("\n  ")}
  let end = min((slice + 1u) * p.sliceChunks, p.chunks);
  for (var c = slice * p.sliceChunks; c < end; c++) {
    let w = chunk(tile, lane, c);
    ${activation === undefined ? "" : "let up_w = chunk(tile + p.upTiles, lane, c);"}
    for (var v = 0u; v < ${columns / 4}u; v++) {
      let k = c * ${columns}u + v * 4u;
      ${each((row) => `let in${row} = input(x${row}, k, post${row});`).join("\n      ")}
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
  const { params, bindings, declarations } = linearInterface(kind);
  return {
    key: `linear many ${kindKey(kind)}`,
    params,
    bindings,
    code: () => shaderCode(params, declarations, manyRowsBody(kind), enablesOf(kind)),
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
${normFunctions(kind, { threads: 256, memory: "xs", declares: false, numRows: 64 })}
@compute @workgroup_size(256) fn main(
  @builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) index: u32${subgroupInputs(kind).parameters}) {
  ${subgroupInputs(kind).keep}
  let first_row = group.y * 64u;
  let last_row = step[p.rowsAt] - 1u;
  ${maskCheck(kind, 64)}
  let ty = index / 16u;
  let tx = index % 16u;
  let first_tile = group.x * ${isGated ? 1 : 2}u;
  ${normedRows(kind, { threads: 256, numRows: 64 })}
  ${four((row) => `var acc${row} = vec4<f32>(); var total${row} = vec4<f32>();`).join("\n  ")}
  let units = p.chunks / ${perUnit}u;
  let slice_units = p.sliceChunks / ${perUnit}u;
  for (var u = 0u; u < units; u++) {
    for (var i = index; i < 512u; i += 256u) {
      let row = i / 8u;
      let k = (i % 8u) * 4u;
      let value = input(p.src + min(first_row + row, last_row) * p.srcStride, u * ${columnUnit}u + k, ${postOf(kind, "row")});
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

/** Ends a workgroup that has no row to compute. */
function maskCheck({ weighs }: LinearKind, numRows: number): string {
  if (weighs === undefined) return "";
  return `if (index == 0u) {
    is_needed = 0u;
    for (var r = first_row; r < first_row + ${numRows}u && r <= last_row; r++) {
      if (ld(p.mask + r * p.maskStride) != f32(${notChosen})) { is_needed = 1u; }
    }
  }
  if (workgroupUniformLoad(&is_needed) == 0u) { return; }`;
}

export function epilogue({ hasNorm, weighs }: LinearKind): string {
  const isMasked = weighs !== undefined;
  return `${isMasked ? "var<workgroup> is_needed: u32;" : ""}
fn finished(total: f32, factor: f32, n: u32) -> f32 {
  var added = 0.0;
  if (p.hasBias != 0u) { added = bias[p.bias + n]; }
  return ${hasNorm ? "fma(total, factor, added)" : "total + added"};
}
fn finish(row: u32, n: u32, value: f32) {
  let at = p.to + row * p.toStride + n;
  ${isMasked ? `let weight = ld(p.mask + row * p.maskStride);\n  if (weight == f32(${notChosen})) { return; }` : ""}
  if (p.accumulates != 0u) { st(at, ${weighs === "output" ? "fma(value, weight, ld(at))" : "ld(at) + value"}); } else { st(at, value); }
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
