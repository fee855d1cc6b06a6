import type { Chart, Hypothesis } from "../check.js";

/** A picture of the hypotheses that have an interval; none where none has. */
export function intervalsFigure(
  title: string,
  unit: string,
  hypotheses: readonly Hypothesis[],
): readonly Chart[] {
  const rows = hypotheses.flatMap(({ name, estimate, interval, margin, verdict }) =>
    estimate === undefined || interval === undefined
      ? []
      : [{ label: name, estimate, interval, margin, verdict }],
  );
  return rows.length === 0 ? [] : [{ kind: "intervals", title, unit, rows }];
}
