import type { ExpertWeights } from "../ops.js";

/** Refuses, by `equal`, an expert whose matrices and biases do not fit each other and the widths of the mixture. */
export function checkExpert(
  index: number,
  expert: ExpertWeights,
  [hidden, inner, outWidth]: readonly [hidden: number, inner: number, outWidth: number],
  equal: (leftName: string, left: number, rightName: string, right: number) => void,
): void {
  const { gate, up, down } = expert;
  const check = (
    name: string,
    rows: number,
    cols: number,
    weights: Pick<ExpertWeights["gate"], "rows" | "cols">,
  ): void => {
    equal(`the number of rows of expert ${index}'s ${name}`, weights.rows, "the rows it needs", rows);
    equal(`the number of columns of expert ${index}'s ${name}`, weights.cols, "the columns it needs", cols);
  };
  check("gate", up === undefined ? 2 * inner : inner, hidden, gate);
  if (up !== undefined) check("up", inner, hidden, up);
  check("down", outWidth, inner, down);
  for (const [bias, weights] of [
    [expert.gateBias, gate],
    [expert.upBias, up],
    [expert.downBias, down],
  ] as const) {
    if (bias !== undefined)
      equal(`a bias of expert ${index}`, bias.length, "the rows of its weight", weights?.rows ?? 0);
  }
}
