/** A logit with the verdict that came with it. */
export interface LabelledLogit {
  readonly logit: number;
  readonly label: boolean;
}

export interface PlattScaling {
  readonly slope: number;
  readonly intercept: number;
}

const mostSteps = 100;

/**
 * Slope and intercept under which the sigmoid of a logit is a probability (Platt 1999, with the targets of his paper, that keep the
 * fit finite where logits separate the labels), by Newton's method with halved steps.
 */
export function plattScaling(rows: readonly LabelledLogit[]): PlattScaling {
  const numPassed = rows.filter(({ label }) => label).length;
  const targets = { pass: (numPassed + 1) / (numPassed + 2), fail: 1 / (rows.length - numPassed + 2) };
  const points = rows.map(({ logit, label }) => ({ logit, target: label ? targets.pass : targets.fail }));
  const lossOf = (slope: number, intercept: number): number =>
    points.reduce((sum, { logit, target }) => {
      const at = slope * logit + intercept;
      return sum + Math.max(at, 0) - at * target + Math.log1p(Math.exp(-Math.abs(at)));
    }, 0);
  let [slope, intercept] = [0, Math.log((numPassed + 1) / (rows.length - numPassed + 1))];
  let loss = lossOf(slope, intercept);
  for (let step = 0; step < mostSteps; step += 1) {
    let [gs, gi, ss, si, ii] = [0, 0, 1e-9, 0, 1e-9];
    for (const { logit, target } of points) {
      const p = 1 / (1 + Math.exp(-(slope * logit + intercept)));
      const curvature = p * (1 - p);
      gs += (p - target) * logit;
      gi += p - target;
      ss += curvature * logit ** 2;
      si += curvature * logit;
      ii += curvature;
    }
    if (Math.abs(gs) + Math.abs(gi) < 1e-8 * rows.length) break;
    const determinant = ss * ii - si * si;
    const [ds, di] = [(ii * gs - si * gi) / determinant, (ss * gi - si * gs) / determinant];
    let size = 1;
    while (size > 1e-10 && !(lossOf(slope - size * ds, intercept - size * di) < loss)) size /= 2;
    if (size <= 1e-10) break;
    slope -= size * ds;
    intercept -= size * di;
    loss = lossOf(slope, intercept);
  }
  return { slope, intercept };
}
