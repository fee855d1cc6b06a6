import type { MatrixShape } from "../device/adapter-traits.js";
import { gatedFunction } from "./activations.js";
import { epilogue, kindKey, linearInterface } from "./linear.js";
import { inputFunctions, type LinearKind, normedRows, normFunctions, postOf } from "./linear-inputs.js";
import { chunkColumns, chunkFunction, columnUnit } from "./matrix-forms.js";
import { type Shader, shaderCode } from "./shader.js";

/** The unit that multiplies: its shape, and the invocations of a subgroup. */
export interface MatrixUnit {
  readonly shape: MatrixShape;
  readonly subgroupSize: number;
}

const numSubgroups = 4;
const columnsTile = 64;
/** f16 from row to row in workgroup memory: rows that begin in different banks. */
const pitch = columnUnit + 8;

/** Rows of a workgroup: few of a decode step, or many of a prompt. Both add up a row alike. */
export const matrixTileRows = { few: 16, many: 64 } as const;

/** The first product of f16 into f32 that tiles divide into, where all subgroups are of one size. */
export function matrixUnitOf(
  shapes: readonly MatrixShape[],
  subgroups: { readonly min: number; readonly max: number } | undefined,
): MatrixUnit | undefined {
  if (subgroups === undefined || subgroups.min !== subgroups.max) return undefined;
  const shape = shapes.find(
    ({ component, result, m, n, k }) =>
      component === "f16" &&
      result === "f32" &&
      matrixTileRows.few % m === 0 &&
      columnUnit % k === 0 &&
      columnsTile % n === 0 &&
      ((matrixTileRows.few / m) * (columnsTile / n)) % numSubgroups === 0,
  );
  return shape && { shape, subgroupSize: subgroups.max };
}

/**
 * Products on subgroup matrices: a workgroup takes `numRows` rows by 64 outputs. Inputs, normalised where they are to be, and weights become f16;
 * sums are f32, of 32 columns after 32. A row's sum does not depend on the other rows of its tile.
 */
export function matrixLinearShader(kind: LinearKind, unit: MatrixUnit, numRows: number): Shader {
  const { m, n, k } = unit.shape;
  const { params, bindings, declarations } = linearInterface(kind);
  return {
    key: `linear ${numRows} on ${m}x${n}x${k} ${kindKey(kind)}`,
    params,
    bindings,
    code: () =>
      shaderCode(params, declarations, body(kind, unit, numRows), [
        "enable f16;",
        "enable subgroups;",
        "enable chromium_experimental_subgroup_matrix;",
        "diagnostic(off, chromium.subgroup_matrix_uniformity);",
      ]),
  };
}

function body(kind: LinearKind, { shape: { m, n, k }, subgroupSize }: MatrixUnit, numRows: number): string {
  const { form, activation, hasNorm } = kind;
  const threads = numSubgroups * subgroupSize;
  const columns = chunkColumns(form.codes);
  const perUnit = columnUnit / columns;
  const isGated = activation !== undefined;
  const outputs = isGated ? columnsTile / 2 : columnsTile;
  const bandColumns = columnsTile / n;
  // A subgroup takes whole bands of rows, or a part of one band.
  const perSubgroup = ((numRows / m) * bandColumns) / numSubgroups;
  const numBands = Math.max(1, perSubgroup / bandColumns);
  const numColumns = Math.min(perSubgroup, bandColumns);
  const list = <T>(count: number, make: (index: number) => T): T[] =>
    Array.from({ length: count }, (_, index) => make(index));
  const each = (make: (band: number, column: number) => string): string =>
    list(numBands, (band) => list(numColumns, (column) => make(band, column)).join("\n")).join("\n");
  const left = `subgroup_matrix_left<f16, ${k}, ${m}>`;
  const right = `subgroup_matrix_right<f16, ${n}, ${k}>`;
  return `${chunkFunction(form)}
${inputFunctions(kind)}
${isGated ? gatedFunction(activation) : ""}
${epilogue(kind)}
var<workgroup> xs: array<f16, ${numRows * pitch}>;
var<workgroup> ws: array<f16, ${columnsTile * pitch}>;
var<workgroup> totals: array<f32, ${numRows * columnsTile}>;
${normFunctions({ ...kind, subgroupSize }, { threads, memory: "squares", declares: true, numRows })}
@compute @workgroup_size(${threads}) fn main(
  @builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) index: u32, @builtin(subgroup_id) subgroup: u32${hasNorm ? ", @builtin(subgroup_invocation_id) own_lane: u32" : ""}) {
  ${hasNorm ? "lane_of_subgroup = own_lane; subgroup_of_lane = subgroup;" : ""}
  let first_row = group.y * ${numRows}u;
  let last_row = step[p.rowsAt] - 1u;
  let first_tile = group.x * ${isGated ? 1 : 2}u;
  let band = subgroup * ${perSubgroup}u / ${bandColumns}u;
  let column = subgroup * ${perSubgroup}u % ${bandColumns}u;
  ${normedRows(kind, { threads, numRows })}
  ${hasNorm ? "workgroupBarrier();" : ""}
  ${each((b, c) => `var acc${b}_${c}: subgroup_matrix_result<f32, ${n}, ${m}>;`)}
  for (var u = 0u; u < p.chunks / ${perUnit}u; u++) {
    for (var i = index; i < ${numRows * 8}u; i += ${threads}u) {
      let row = i / 8u;
      let at = (i % 8u) * 4u;
      let value = input(p.src + min(first_row + row, last_row) * p.srcStride, u * ${columnUnit}u + at, ${postOf(kind, "row")})${hasNorm ? " * factors[row]" : ""};
      let half = vec4<f16>(clamp(value, vec4<f32>(-65504.0), vec4<f32>(65504.0)));
      for (var j = 0u; j < 4u; j++) { xs[row * ${pitch}u + at + j] = half[j]; }
    }
    for (var i = index; i < ${columnsTile * perUnit}u; i += ${threads}u) {
      let o = i % ${columnsTile}u;
      let part = i / ${columnsTile}u;
      let tile = ${isGated ? "first_tile + select(0u, p.upTiles, o >= 32u)" : "min(first_tile + o / 32u, p.tiles - 1u)"};
      let w = chunk(tile, o % 32u, u * ${perUnit}u + part);
      for (var v = 0u; v < ${columns / 4}u; v++) {
        let half = vec4<f16>(w[v]);
        for (var j = 0u; j < 4u; j++) { ws[o * ${pitch}u + part * ${columns}u + v * 4u + j] = half[j]; }
      }
    }
    workgroupBarrier();
    for (var at = 0u; at < ${columnUnit}u; at += ${k}u) {
      ${list(numColumns, (c) => `let b${c} = subgroupMatrixLoad<${right}, col_major>(&ws, (column + ${c}u) * ${n * pitch}u + at, ${pitch}u);`).join("\n")}
      ${list(numBands, (b) => `let a${b} = subgroupMatrixLoad<${left}, row_major>(&xs, (band + ${b}u) * ${m * pitch}u + at, ${pitch}u);`).join("\n")}
      ${each((b, c) => `acc${b}_${c} = subgroupMatrixMultiplyAccumulate(a${b}, b${c}, acc${b}_${c});`)}
    }
    workgroupBarrier();
  }
  ${each((b, c) => `subgroupMatrixStore<row_major>(&totals, (band + ${b}u) * ${m * columnsTile}u + (column + ${c}u) * ${n}u, acc${b}_${c}, ${columnsTile}u);`)}
  workgroupBarrier();
  for (var i = index; i < ${numRows * outputs}u; i += ${threads}u) {
    let row = i / ${outputs}u;
    let o = i % ${outputs}u;
    let out = first_tile * 32u + o;
    if (first_row + row > last_row || out >= p.outRows) { continue; }
    let total = totals[row * ${columnsTile}u + o];
    ${
      isGated
        ? `finish(first_row + row, out, gated(finished(total, 1.0, out), finished(totals[row * ${columnsTile}u + o + 32u], 1.0, out + p.upTiles * 32u)));`
        : "finish(first_row + row, out, finished(total, 1.0, out));"
    }
  }
}`;
}
