import type { MatrixShape } from "../device/adapter-traits.js";
import { gatedFunction } from "./activations.js";
import { enablesOf, epilogue, kindKey, linearInterface } from "./linear.js";
import {
  inputFunctions,
  type LinearKind,
  normedRows,
  normFunctions,
  postOf,
  subgroupInputs,
} from "./linear-inputs.js";
import { chunkColumns, chunkFunction, columnUnit } from "./matrix-forms.js";
import { type MatrixUnit, numSubgroups, tileCode, unitThreads } from "./matrix-unit.js";
import { type Shader, shaderCode } from "./shader.js";

const columnsTile = 64;
/** f16 from row to row in workgroup memory: rows that begin in different banks. */
const pitch = columnUnit + 8;

/** Rows of a workgroup: few of a decode step, or many of a prompt. Both add up a row alike. */
const fewRows = 16;
export function matrixTileRows({ isEmulated }: MatrixUnit): { readonly few: number; readonly many: number } {
  // What stands for f16 takes twice the memory.
  return { few: fewRows, many: isEmulated === true ? 32 : 64 };
}

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
      fewRows % m === 0 &&
      columnUnit % k === 0 &&
      columnsTile % n === 0 &&
      ((fewRows / m) * (columnsTile / n)) % numSubgroups === 0,
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
    key: `linear ${numRows} on ${unit.isEmulated === true ? "lanes as " : ""}${m}x${n}x${k} ${kindKey(kind)}`,
    params,
    bindings,
    code: () =>
      shaderCode(params, declarations, body(kind, unit, numRows), [
        ...new Set([...enablesOf(kind), ...tileCode(unit).enables]),
      ]),
  };
}

function body(kind: LinearKind, unit: MatrixUnit, numRows: number): string {
  const { form, activation, hasNorm } = kind;
  const { m, n, k } = unit.shape;
  const tiles = tileCode(unit);
  const threads = unitThreads(unit);
  const norms = subgroupInputs(kind, tiles.parameters === "" ? undefined : "subgroup");
  /** Where the weights begin in `halves`, behind the inputs. */
  const weightsAt = numRows * pitch;
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
  return `${chunkFunction(form)}
${inputFunctions(kind)}
${isGated ? gatedFunction(activation) : ""}
${epilogue(kind)}
${tiles.declarations(weightsAt + columnsTile * pitch)}
var<workgroup> totals: array<f32, ${numRows * columnsTile}>;
${normFunctions(kind, { threads, memory: "squares", declares: true, numRows })}
@compute @workgroup_size(${threads}) fn main(
  @builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) index: u32${tiles.parameters}${norms.parameters}) {
  ${tiles.begin}
  ${norms.keep}
  let first_row = group.y * ${numRows}u;
  let last_row = step[p.rowsAt] - 1u;
  let first_tile = group.x * ${isGated ? 1 : 2}u;
  let band = subgroup * ${perSubgroup}u / ${bandColumns}u;
  let column = subgroup * ${perSubgroup}u % ${bandColumns}u;
  ${normedRows(kind, { threads, numRows })}
  ${hasNorm ? "workgroupBarrier();" : ""}
  ${each((b, c) => tiles.sums(`acc${b}_${c}`))}
  for (var u = 0u; u < p.chunks / ${perUnit}u; u++) {
    for (var i = index; i < ${numRows * 8}u; i += ${threads}u) {
      let row = i / 8u;
      let at = (i % 8u) * 4u;
      let value = input(p.src + min(first_row + row, last_row) * p.srcStride, u * ${columnUnit}u + at, ${postOf(kind, "row")})${hasNorm ? " * factors[row]" : ""};
      let half = ${tiles.halfs("clamp(value, vec4<f32>(-65504.0), vec4<f32>(65504.0))")};
      for (var j = 0u; j < 4u; j++) { halves[row * ${pitch}u + at + j] = half[j]; }
    }
    for (var i = index; i < ${columnsTile * perUnit}u; i += ${threads}u) {
      let o = i % ${columnsTile}u;
      let part = i / ${columnsTile}u;
      let tile = ${isGated ? "first_tile + select(0u, p.upTiles, o >= 32u)" : "min(first_tile + o / 32u, p.tiles - 1u)"};
      let w = chunk(tile, o % 32u, u * ${perUnit}u + part);
      for (var v = 0u; v < ${columns / 4}u; v++) {
        let half = ${tiles.halfs("w[v]")};
        for (var j = 0u; j < 4u; j++) { halves[${weightsAt}u + o * ${pitch}u + part * ${columns}u + v * 4u + j] = half[j]; }
      }
    }
    workgroupBarrier();
    for (var at = 0u; at < ${columnUnit}u; at += ${k}u) {
      ${list(numColumns, (c) => tiles.right(`b${c}`, `${weightsAt}u + (column + ${c}u) * ${n * pitch}u + at`, pitch, "columns")).join("\n")}
      ${list(numBands, (b) => tiles.left(`a${b}`, `(band + ${b}u) * ${m * pitch}u + at`, pitch)).join("\n")}
      ${each((b, c) => tiles.multiply(`a${b}`, `b${c}`, `acc${b}_${c}`))}
    }
    workgroupBarrier();
  }
  ${each((b, c) => tiles.store(`acc${b}_${c}`, "totals", `(band + ${b}u) * ${m * columnsTile}u + (column + ${c}u) * ${n}u`, columnsTile))}
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
