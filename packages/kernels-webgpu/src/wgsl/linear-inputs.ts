import type { Activation } from "@octavo/kernels";
import type { MatrixForm } from "./matrix-forms.js";

/** What a linear does beside multiplying. */
export interface LinearKind {
  readonly form: MatrixForm;
  /** Whether inputs begin at, and rows have, a multiple of four floats, and columns need no padding. */
  readonly isAligned: boolean;
  /** Inputs are normalised first: each times its weight, and the sum times the row's factor. Aligned only. */
  readonly hasNorm: boolean;
  /** What is normalised is a stream and the output of a block, normalised before it is added; the sum is kept elsewhere. */
  readonly hasPost?: boolean;
  /** The matrix is gates above as many ups, a multiple of 32; what is stored is the activation of the gate times up. */
  readonly activation?: Activation | undefined;
  /** Invocations of a subgroup, where all are of one size and norms are to be summed by them. */
  readonly subgroupSize?: number | undefined;
  /** Rows have a weight, which multiplies the input, the output or nothing; those of `notChosen` are left alone. */
  readonly weighs?: "input" | "output" | "nothing" | undefined;
}

/** Parameters of `main` and what keeps them, for sums by subgroups; `main` may have the subgroup's number by another name. */
export function subgroupInputs(
  { hasNorm, subgroupSize }: LinearKind,
  subgroup?: string,
): {
  readonly parameters: string;
  readonly keep: string;
} {
  if (!hasNorm || subgroupSize === undefined) return { parameters: "", keep: "" };
  return {
    parameters: `, @builtin(subgroup_invocation_id) own_lane: u32${subgroup === undefined ? ", @builtin(subgroup_id) own_subgroup: u32" : ""}`,
    keep: `lane_of_subgroup = own_lane; subgroup_of_lane = ${subgroup ?? "own_subgroup"};`,
  };
}

/**
 * Four inputs of the row at `x`, and the stream that they are normalised from: with a block's output in it where that is added first, which is
 * normalised by the row's `factor`.
 */
export function inputFunctions({ isAligned, hasNorm, hasPost = false, weighs }: LinearKind): string {
  const times = weighs === "input" ? " * factor" : "";
  const read = isAligned
    ? `return ld4(x + k)${times};`
    : `var value = vec4<f32>();
  for (var j = 0u; j < 4u; j++) { if (k + j < p.cols) { value[j] = ld(x + k + j); } }
  return value${times};`;
  const weights = (buffer: string, offset: string): string =>
    `vec4<f32>(${buffer}[k], ${buffer}[k + 1u], ${buffer}[k + 2u], ${buffer}[k + 3u]) + vec4<f32>(p.${offset})`;
  const added = `fma(ld4(x + p.update + k) * factor, ${weights("post", "postOffset")}, ld4(x + k))`;
  return `fn ld4(at: u32) -> vec4<f32> { return arena[at >> 2u]; }
fn stream(x: u32, k: u32, factor: f32) -> vec4<f32> { return ${hasPost ? added : "ld4(x + k)"}; }
fn input(x: u32, k: u32, factor: f32) -> vec4<f32> { ${hasNorm ? `return stream(x, k, factor) * (${weights("norm", "weightOffset")});` : read} }
fn dot_in_order(w: vec4<f32>, x: vec4<f32>, sum: f32) -> f32 {
  return fma(w.w, x.w, fma(w.z, x.z, fma(w.y, x.y, fma(w.x, x.x, sum))));
}`;
}

/** The factor of a row's block output, or the weight of its input, by the row's number in the workgroup. */
export function postOf({ hasPost = false, weighs }: LinearKind, row: string): string {
  if (weighs === "input") return `ld(p.mask + min(first_row + ${row}, last_row) * p.maskStride)`;
  return hasPost ? `posts[${row}]` : "1.0";
}

interface RowNorms {
  readonly threads: number;
  readonly numRows: number;
}

/** Code that fills `factors` and `posts` of a workgroup's rows; the workgroups of the first outputs keep the new stream. */
export function normedRows({ hasNorm, hasPost = false }: LinearKind, { threads, numRows }: RowNorms): string {
  if (!hasNorm) return "";
  const keeping = `workgroupBarrier();
  if (group.x == 0u) {
    for (var r = 0u; r < ${numRows}u && first_row + r <= last_row; r++) {
      let x = p.src + (first_row + r) * p.srcStride;
      for (var k = index * 4u; k < p.cols; k += ${threads * 4}u) { arena[(x + p.stream + k) >> 2u] = stream(x, k, posts[r]); }
    }
  }`;
  return `for (var r = 0u; r < ${numRows}u; r += 4u) {
    let e = ${hasPost ? "post_factors(first_row + r, last_row, index, vec4<f32>())" : "vec4<f32>()"};
    let f = norm_factors(first_row + r, last_row, index, e);
    if (index == 0u) {
      for (var j = 0u; j < 4u && r + j < ${numRows}u; j++) { factors[r + j] = f[j]; ${hasPost ? "posts[r + j] = e[j];" : ""} }
    }
  }
  ${hasPost ? keeping : ""}`;
}

/**
 * 1 / root mean square of four rows, summed in one order in every kernel: neighbours first, then pairs of neighbours. Subgroups, where all are
 * of one size, exchange what lies within them without memory and barriers, in the same order.
 */
export function normFunctions(
  { hasNorm, hasPost = false, subgroupSize }: LinearKind,
  { threads, memory, declares, numRows }: RowNorms & { readonly memory: string; readonly declares: boolean },
): string {
  const factors = `var<workgroup> factors: array<f32, ${Math.max(4, numRows)}>;`;
  if (!hasNorm) return factors;
  const within = subgroupSize ?? 1;
  const strides = (from: number, to: number): number[] => {
    const all: number[] = [];
    for (let stride = from; stride < to; stride *= 2) all.push(stride);
    return all;
  };
  const factorsOf = (name: string, values: string, eps: string): string => `
fn ${name}(row: u32, last_row: u32, index: u32, factors_before: vec4<f32>) -> vec4<f32> {
  let at = vec4<u32>(p.src) + min(vec4<u32>(row) + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(last_row)) * p.srcStride;
  var sums = vec4<f32>();
  for (var i = index * 4u; i < p.cols; i += ${threads * 4}u) {
    for (var r = 0u; r < 4u; r++) { let x = ${values}; sums[r] = dot_in_order(x, x, sums[r]); }
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
  return vec4<f32>(1.0) / sqrt(total / f32(p.cols) + vec4<f32>(${eps}));
}`;
  return `${factors}
${subgroupSize === undefined ? "" : "var<private> lane_of_subgroup: u32; var<private> subgroup_of_lane: u32;"}
${declares ? `var<workgroup> ${memory}: array<vec4<f32>, ${threads}>;` : ""}
${hasPost ? `var<workgroup> posts: array<f32, ${Math.max(4, numRows)}>;\n${factorsOf("post_factors", "ld4(at[r] + p.update + i)", "p.postEps")}` : ""}
${factorsOf("norm_factors", "stream(at[r], i, factors_before[r])", "p.eps")}`;
}
