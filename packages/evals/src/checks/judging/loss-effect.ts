import { normalQuantile, pairsForNonInferiority } from "@octavo/statistics";
import type { SampleSize } from "../check.js";
import type { PairedComparison } from "./paired-comparison.js";
import { casesForSequence } from "./sequence-bounds.js";
import { type EffectLimits, marginEffect, type TestedEffect } from "./verdicts.js";

/**
 * A loss against a margin. A margin of zero on independent right and wrong answers is decided by the exact test of McNemar
 * (1947).
 */
export function lossEffect(name: string, compared: PairedComparison, limits: EffectLimits): TestedEffect {
  const { margin, alpha } = limits;
  const isExact = margin === 0 && compared.mcnemarPValue !== undefined;
  return marginEffect(
    {
      name,
      method: isExact ? "exact McNemar" : `${compared.method}, non-inferiority`,
      estimate: compared.loss,
      interval: compared.intervalAt(1 - alpha),
      pValue: isExact ? (compared.loss > 0 ? compared.mcnemarPValue : 1) : compared.pValueBeyond(margin),
    },
    limits,
  );
}

export interface Planned {
  readonly name: string;
  readonly compared: PairedComparison;
  readonly margin: number;
  /** Nothing may differ: as many equal cases are wanted as exclude that more than the margin would. */
  readonly isEquality?: boolean;
}

/** Cases that must all be equal for the exact interval of the share that differs to end at the margin. */
function equalCasesFor(margin: number, alpha: number): number {
  return Math.ceil(Math.log(alpha / 2) / Math.log(1 - margin));
}

/** With two looks, each gets half of alpha. */
function levelOf({ hasPlannedLook }: PairedComparison, alpha: number): number {
  return hasPlannedLook ? alpha / 2 : alpha;
}

/**
 * Pairs after which an interval excludes the margin with the stated power where the true loss is the observed one, on either
 * side of it. Undefined where the loss is so near the margin that over a million would not do.
 */
function pairsAtObserved(
  loss: number,
  limits: { discordance: number; margin: number; alpha: number; power: number },
): number | undefined {
  const { discordance, margin, alpha, power } = limits;
  const difference = loss - margin;
  if (difference ** 2 * mostPairs < 1) return undefined;
  const changing = Math.max(discordance, Math.abs(loss));
  if (difference < 0) {
    const whole = { discordance: changing, margin, difference: -loss, alpha: alpha / 2, power };
    const pairs = pairsForNonInferiority(whole);
    return pairs > mostPairs ? undefined : pairs;
  }
  // of one pair's loss (Miettinen 1968)
  const variance = changing - loss ** 2;
  const z = normalQuantile(1 - alpha / 2) + normalQuantile(power);
  const pairs = Math.ceil((z ** 2 * variance) / difference ** 2);
  return pairs > mostPairs ? undefined : Math.max(1, pairs);
}

const mostPairs = 1_000_000;

function scaled(cases: number | undefined, designEffect: number): number | undefined {
  return cases === undefined ? undefined : Math.ceil(cases * designEffect);
}

/** Pairs that would show "within the margin" where nothing was lost, for the comparison that needs most more of them. */
export function planPairs(
  planned: readonly Planned[],
  { alpha, power }: { readonly alpha: number; readonly power: number },
): SampleSize {
  let worst: (SampleSize & { readonly missing: number }) | undefined;
  for (const { name, compared, margin, isEquality } of planned) {
    if (margin <= 0 || margin >= 1) continue;
    // one more changed case than was seen, of two more cases: no change seen does not mean that there is none
    const discordance = (compared.lost + compared.gained + 1) / (compared.count + 2);
    const designEffect = compared.count / compared.numClusters;
    const needed =
      isEquality === true
        ? equalCasesFor(margin, alpha)
        : compared.isSequential && !compared.hasPlannedLook
          ? scaled(casesForSequence(discordance, { margin, alpha }), designEffect)
          : scaled(
              pairsForNonInferiority({ discordance, margin, alpha: levelOf(compared, alpha) / 2, power }),
              designEffect,
            );
    const neededAtObserved =
      isEquality === true
        ? undefined
        : scaled(
            pairsAtObserved(compared.loss, { discordance, margin, alpha: levelOf(compared, alpha), power }),
            designEffect,
          );
    const missing = (needed ?? Number.POSITIVE_INFINITY) - compared.count;
    if (worst !== undefined && worst.missing >= missing) continue;
    const shown =
      isEquality === true
        ? `to exclude that more than ${points(margin)} % differ, if none does`
        : `to show a loss within ${points(margin)} points with ${(100 * discordance).toFixed(1)} % of cases changing${compared.isSequential && !compared.hasPlannedLook ? ", looked at as they come, in half of all runs" : ""}`;
    const observed =
      neededAtObserved === undefined
        ? ""
        : `; if the loss is the ${points(compared.loss)} points seen, ${neededAtObserved} cases decide`;

    worst = {
      have: compared.count,
      needed,
      alpha,
      power,
      basis: `${name}: ${shown}${observed}`,
      ...(neededAtObserved === undefined ? {} : { neededAtObserved }),
      missing,
    };
  }
  if (worst !== undefined) {
    const { missing: _missing, ...size } = worst;
    return size;
  }
  const have = Math.min(...planned.map(({ compared }) => compared.count));
  return {
    have: planned.length === 0 ? 0 : have,
    needed: undefined,
    alpha,
    power,
    basis: planned.length === 0 ? "nothing was compared" : "no margin to plan for",
  };
}

/** A share as percentage points, with one decimal where it has one. */
export function points(share: number): string {
  const rounded = Math.round(share * 1000) / 10;
  return Object.is(rounded, -0) ? "0" : String(rounded);
}
