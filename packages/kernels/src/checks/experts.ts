import type { ExpertWeights, Op } from "../ops.js";
import type { OpChecker } from "./gate-ops.js";

/** Refuses, by `equal`, an expert whose matrices and biases do not fit each other and the widths of the mixture. */
export function checkExpert(
  index: number,
  expert: ExpertWeights,
  isGated: boolean,
  widths: {
    readonly hidden: number;
    readonly inner: number;
    readonly out: number;
    readonly isSplit: boolean;
  },
  equal: (leftName: string, left: number, rightName: string, right: number) => void,
): void {
  const { gate, up, down } = expert;
  const { hidden, out } = widths;
  const stacked = up === undefined && isGated ? 2 : 1;
  // A rank has some of the rows: no more than all.
  const inner = widths.isSplit ? Math.min(widths.inner, gate.rows / stacked) : widths.inner;
  const check = (
    name: string,
    rows: number,
    cols: number,
    weights: Pick<ExpertWeights["gate"], "rows" | "cols">,
  ): void => {
    equal(`the number of rows of expert ${index}'s ${name}`, weights.rows, "the rows it needs", rows);
    equal(`the number of columns of expert ${index}'s ${name}`, weights.cols, "the columns it needs", cols);
  };
  check("gate", stacked * inner, hidden, gate);
  if (up !== undefined) check("up", isGated ? inner : 0, hidden, up);
  check("down", out, widths.inner, down);
  for (const [bias, weights] of [
    [expert.gateBias, gate],
    [expert.upBias, up],
    [expert.downBias, down],
  ] as const) {
    if (bias !== undefined)
      equal(`a bias of expert ${index}`, bias.length, "the rows of its weight", weights?.rows ?? 0);
  }
}

export function checkRouting(op: Extract<Op, { op: "experts" }>, check: OpChecker): void {
  const { groups, topK, selectionBias, scoring, weightScale = 1, expertScales, experts } = op;
  if (scoring !== undefined && scoring !== "sigmoid") check.fail(`knows no scoring ${String(scoring)}`);
  if (selectionBias !== undefined)
    check.equal("the selection bias", selectionBias.length, "the experts", experts.length);
  if (expertScales !== undefined)
    check.equal("the number of scales", expertScales.length, "the experts", experts.length);
  if (!Number.isFinite(weightScale)) check.fail(`scales its weights by ${weightScale}`);
  if (groups === undefined) return;
  check.positive("groups.count", groups.count);
  check.positive("groups.chosen", groups.chosen);
  if (groups.by !== "best" && groups.by !== "two_best")
    check.fail(`cannot choose groups by ${String(groups.by)}`);
  const { length } = experts;
  if (length % groups.count !== 0) check.fail(`has ${length} experts in ${groups.count} groups`);
  if (groups.chosen > groups.count || topK > (groups.chosen * length) / groups.count)
    check.fail(`chooses ${topK} experts of ${groups.chosen} of ${groups.count} groups`);
}
