import type { InputStatistics } from "../calibration/input-statistics.js";
import type { AwqMatrix } from "./awq.js";
import type { FoldableInput } from "./folding.js";

/** SmoothQuant's migration strength alpha; the paper's default. */
const strength = 0.5;
const leastMaximum = 1e-5;

/**
 * SmoothQuant's migration (Xiao et al., arXiv 2211.10438): columns of the input are divided by max|x|^0.5 / max|w|^0.5, so that neither
 * side has outliers that spoil a scale for all columns.
 * @returns scales by the producer's columns
 */
export function smoothingScales(
  { columnOf, producerWidth }: FoldableInput,
  matrices: readonly AwqMatrix[],
  { maxima }: InputStatistics,
): Float32Array {
  const inputs = new Float32Array(producerWidth);
  const weights = new Float32Array(producerWidth);
  for (const [col, maximum] of maxima.entries()) {
    const column = columnOf[col]!;
    inputs[column] = Math.max(inputs[column]!, maximum);
  }
  for (const { weight, cols } of matrices) {
    for (let at = 0; at < weight.length; at++) {
      const column = columnOf[at % cols]!;
      const magnitude = Math.abs(weight[at]!);
      if (magnitude > weights[column]!) weights[column] = magnitude;
    }
  }
  return inputs.map((maximum, column) => {
    const scale =
      Math.max(maximum, leastMaximum) ** strength /
      Math.max(weights[column]!, leastMaximum) ** (1 - strength);
    return Math.min(1e4, Math.max(1e-4, scale));
  });
}
