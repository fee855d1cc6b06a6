import type { MatrixShape } from "../device/adapter-traits.js";

/** What multiplies tiles of f16 into f32: the tiles' sizes, and the invocations that hold one together. */
export interface MatrixUnit {
  readonly shape: Pick<MatrixShape, "m" | "n" | "k">;
  readonly subgroupSize: number;
  /** The lanes of any device multiply instead, slowly: the same kernels, where a device has no such unit. */
  readonly isEmulated?: true;
}

/** Of square tiles. */
export function emulatedUnit(size: number, subgroupSize: number): MatrixUnit {
  return { shape: { m: size, n: size, k: size }, subgroupSize, isEmulated: true };
}

/** Subgroups of a workgroup. */
export const numSubgroups = 4;

/** Invocations that share a workgroup's tiles. */
export function unitThreads({ subgroupSize }: MatrixUnit): number {
  return numSubgroups * subgroupSize;
}

/** Code of kernels on matrix units. Tiles of f16 lie in one array of workgroup memory, `halves`. */
export interface TileCode {
  readonly enables: readonly string[];
  /** What comes before `main`, with room for so many halves. */
  readonly declarations: (length: number) => string;
  /** Bytes of an element of `halves`. */
  readonly halfBytes: number;
  /** Parameters of `main` behind `index`, its place in the workgroup, and what sets `subgroup`. */
  readonly parameters: string;
  readonly begin: string;
  /** A number, or a vector of four, as it lies in `halves`: rounded to f16, whose range it must be in. */
  readonly half: (value: string) => string;
  readonly halfs: (vector: string) => string;
  /** m rows of k columns; rows are `pitch` apart. */
  readonly left: (name: string, at: string, pitch: number) => string;
  /** n columns of k rows; what is `pitch` apart are columns or rows. */
  readonly right: (name: string, at: string, pitch: number, apart: "columns" | "rows") => string;
  /** m rows of n sums, all zero. */
  readonly sums: (name: string) => string;
  readonly multiply: (left: string, right: string, sums: string) => string;
  /** Writes sums to an array of f32 in workgroup memory. */
  readonly store: (sums: string, array: string, at: string, pitch: number) => string;
}

export function tileCode(unit: MatrixUnit): TileCode {
  return unit.isEmulated === true ? emulatedTiles(unit) : subgroupTiles(unit);
}

function subgroupTiles({ shape: { m, n, k } }: MatrixUnit): TileCode {
  return {
    enables: [
      "enable f16;",
      "enable subgroups;",
      "enable chromium_experimental_subgroup_matrix;",
      "diagnostic(off, chromium.subgroup_matrix_uniformity);",
    ],
    declarations: (length) => `var<workgroup> halves: array<f16, ${length}>;`,
    halfBytes: 2,
    parameters: ", @builtin(subgroup_id) subgroup: u32",
    begin: "",
    half: (value) => `f16(${value})`,
    halfs: (vector) => `vec4<f16>(${vector})`,
    left: (name, at, pitch) =>
      `let ${name} = subgroupMatrixLoad<subgroup_matrix_left<f16, ${k}, ${m}>, row_major>(&halves, ${at}, ${pitch}u);`,
    right: (name, at, pitch, apart) =>
      `let ${name} = subgroupMatrixLoad<subgroup_matrix_right<f16, ${n}, ${k}>, ${apart === "columns" ? "col_major" : "row_major"}>(&halves, ${at}, ${pitch}u);`,
    sums: (name) => `var ${name} = subgroup_matrix_result<f32, ${n}, ${m}>();`,
    multiply: (left, right, sums) =>
      `${sums} = subgroupMatrixMultiplyAccumulate(${left}, ${right}, ${sums});`,
    store: (sums, array, at, pitch) =>
      `subgroupMatrixStore<row_major>(&${array}, ${at}, ${sums}, ${pitch}u);`,
  };
}

/** Lane i of a subgroup holds the sums i, i + size, ... of a tile. */
function emulatedTiles({ shape: { m, n, k }, subgroupSize }: MatrixUnit): TileCode {
  const each = (m * n) / subgroupSize;
  const kept = `array<f32, ${each}>`;
  return {
    enables: [],
    declarations: (length) => `var<workgroup> halves: array<f32, ${length}>;
var<private> lane_of_tile: u32;
struct Tile { at: u32, apart: u32, deep: u32 }
fn half_of(value: f32) -> f32 { return unpack2x16float(pack2x16float(vec2<f32>(value, 0.0))).x; }
fn halfs_of(value: vec4<f32>) -> vec4<f32> { return vec4<f32>(half_of(value.x), half_of(value.y), half_of(value.z), half_of(value.w)); }
fn multiplied(a: Tile, b: Tile, before: ${kept}) -> ${kept} {
  var sums = before;
  for (var i = 0u; i < ${each}u; i++) {
    let row = (lane_of_tile + i * ${subgroupSize}u) / ${n}u;
    let column = (lane_of_tile + i * ${subgroupSize}u) % ${n}u;
    for (var d = 0u; d < ${k}u; d++) {
      sums[i] = fma(halves[a.at + row * a.apart + d * a.deep], halves[b.at + column * b.apart + d * b.deep], sums[i]);
    }
  }
  return sums;
}`,
    halfBytes: 4,
    parameters: "",
    begin: `let subgroup = index / ${subgroupSize}u; lane_of_tile = index % ${subgroupSize}u;`,
    half: (value) => `half_of(${value})`,
    halfs: (vector) => `halfs_of(${vector})`,
    left: (name, at, pitch) => `let ${name} = Tile(${at}, ${pitch}u, 1u);`,
    right: (name, at, pitch, apart) =>
      `let ${name} = Tile(${at}, ${apart === "columns" ? `${pitch}u, 1u` : `1u, ${pitch}u`});`,
    sums: (name) => `var ${name} = ${kept}();`,
    multiply: (left, right, sums) => `${sums} = multiplied(${left}, ${right}, ${sums});`,
    store: (sums, array, at, pitch) => `for (var i = 0u; i < ${each}u; i++) {
      let e = lane_of_tile + i * ${subgroupSize}u;
      ${array}[${at} + e / ${n}u * ${pitch}u + e % ${n}u] = ${sums}[i];
    }`,
  };
}
