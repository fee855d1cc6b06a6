import { requireCount, requireLevel, requireOneSidedAlpha } from "../check.js";
import { binomialPmf, binomialTail } from "../distributions/binomial.js";
import { normalCdf } from "../distributions/normal.js";
import type { Alternative, Interval } from "../estimate.js";
import { tangoInterval, tangoStatistic } from "../intervals/tango.js";
import { nonInferiority, type MarginVerdict } from "./non-inferiority.js";
import { type PairedTable, requirePairs } from "./paired-table.js";

export interface McNemarResult {
  readonly pValue: number;
  /** With half the probability of what was seen: less conservative, not guaranteed (Fagerland, Lydersen and Laake 2013). */
  readonly midPValue: number;
}

/**
 * McNemar's exact test (1947) on discordant pairs: are losses and gains as likely? `greater` looks for more losses than
 * gains. Concordant pairs do not matter. Throws `invalid_option` on anything but counts.
 */
export function mcnemarExact(
  { lost, gained }: Pick<PairedTable, "lost" | "gained">,
  alternative: Alternative = "two-sided",
): McNemarResult {
  requireCount("lost", lost);
  requireCount("gained", gained);
  const discordant = lost + gained;
  const seen = binomialPmf(lost, discordant, 0.5);
  const more = binomialTail(lost, discordant, 0.5);
  const fewer = binomialTail(gained, discordant, 0.5);
  if (alternative === "greater") return { pValue: more, midPValue: more - seen / 2 };
  if (alternative === "less") return { pValue: fewer, midPValue: fewer - seen / 2 };
  const pValue = Math.min(1, 2 * Math.min(more, fewer));
  return { pValue, midPValue: lost === gained ? 1 - seen / 2 : pValue - seen };
}

export interface NonInferiorityResult extends MarginVerdict {
  /** Share of right answers gained less lost; negative is a loss. */
  readonly estimate: number;
  /** Two-sided at 1 - 2 alpha, so that each end alone errs alpha of the time. */
  readonly interval: Interval;
  /** p-value of "the loss is `margin` or more": small means non-inferior. */
  readonly pValue: number;
  /** p-value of "the loss is less than `margin`": small means inferior by more than the margin. */
  readonly inferiorityPValue: number;
}

/**
 * Has the candidate lost less than `margin` (a share, fixed before the run) of the cases? Tango's score test for paired
 * proportions (1998), corrected so that neither a pass nor a fail is wrong more often than alpha (see `tangoStatistic`). The interval
 * is the test's inversion: interval, p values and verdict never disagree. Throws `invalid_option` without a pair, for a margin outside (0, 1) or an alpha outside (0, 1/2).
 */
export function mcnemarNonInferiority(
  table: PairedTable,
  { margin, alpha = 0.025 }: { readonly margin: number; readonly alpha?: number },
): NonInferiorityResult {
  const pairs = requirePairs(table);
  requireLevel("margin", margin);
  requireOneSidedAlpha("alpha", alpha);
  const z = tangoStatistic(table, -margin);
  const interval = tangoInterval(table, 1 - 2 * alpha);
  return {
    estimate: (table.gained - table.lost) / pairs,
    interval,
    pValue: normalCdf(-z),
    inferiorityPValue: normalCdf(z),
    ...nonInferiority({ interval, margin }),
  };
}
