import { OctavoError } from "@octavo/protocol";
import { requireOneSidedAlpha, requirePositive } from "../check.js";
import { findRoot } from "../distributions/find-root.js";
import { normalQuantile, normalTail } from "../distributions/normal.js";
import { gaussLegendre } from "./gauss-legendre.js";

/**
 * How much of alpha may be used by when (Lan and DeMets 1983): `obrien-fleming` keeps almost all for the end, `pocock` shares
 * it about evenly, `power` uses alpha t^power (Kim and DeMets 1987).
 */
export type AlphaSpending = "obrien-fleming" | "pocock" | { readonly power: number };

export interface GroupSequentialDesign {
  /** How much is known at each look, ascending, such as pairs: [200, 500, 1000, 2000]. The last is the end. */
  readonly looks: readonly number[];
  /** Chance of ever crossing a boundary without an effect; two-sided designs share it between the sides. */
  readonly alpha: number;
  readonly spending?: AlphaSpending;
  readonly sides?: 1 | 2;
}

export interface SequentialLook {
  readonly information: number;
  /** Of the last look's information. */
  readonly fraction: number;
  /** Stop when the z statistic is beyond this (in size, if two-sided); infinite where too little may be spent yet. */
  readonly z: number;
  /** p value, of as many sides as the design, at which to stop. */
  readonly nominalAlpha: number;
  /** Of the two-sided interval estimate +- z standard errors: these intervals hold at all looks at once (Jennison and Turnbull 1989). */
  readonly confidence: number;
  /** Alpha spent up to and with this look. */
  readonly spent: number;
}

const mostLooks = 100;
/** What a look adds, as a share of the end's information: less would take ever finer integration. */
const leastStep = 1e-4;
/** Beyond this many standard deviations there is nothing to integrate. */
const farEnd = 9;

/**
 * Boundaries for looking at accumulating data a few times: the joint distribution of the z statistics (a Brownian motion seen
 * at the fractions) is integrated from look to look (Armitage, McPherson and Rowe 1969; Jennison and Turnbull 2000, chapter
 * 19). If the looks come at other times than planned, ask again with the times that were. Throws `invalid_option` on looks
 * that do not ascend by a ten-thousandth of the last at least, more than 100 of them, or an alpha outside (0, 1/2).
 */
export function groupSequential(design: GroupSequentialDesign): SequentialLook[] {
  const { looks, alpha, spending = "obrien-fleming", sides = 2 } = design;
  requireLooks(looks);
  requireOneSidedAlpha("alpha", alpha);
  if (typeof spending === "object") requirePositive("spending.power", spending.power);
  const end = looks.at(-1)!;
  const perSide = alpha / sides;
  let spent = 0;
  let density: Density | undefined;
  return looks.map((information, index) => {
    const fraction = information / end;
    const target = index === looks.length - 1 ? perSide : spentBy(fraction, perSide, spending);
    const z = boundary(density, fraction, target - spent);
    spent = target;
    density = advance(
      density,
      fraction,
      z,
      sides,
      looks[index + 1] === undefined ? 1 : looks[index + 1]! / end,
    );
    return {
      information,
      fraction,
      z,
      nominalAlpha: sides * normalTail(z),
      confidence: 1 - 2 * normalTail(z),
      spent: sides * spent,
    };
  });
}

function requireLooks(looks: readonly number[]): void {
  if (looks.length === 0 || looks.length > mostLooks) {
    refuse("looks", `There are ${looks.length} looks; expected 1 to ${mostLooks}.`);
  }
  for (const [index, information] of looks.entries()) {
    requirePositive(`looks[${index}]`, information);
    if (index === 0) continue;
    if (!(information - looks[index - 1]! >= leastStep * looks.at(-1)!)) {
      refuse(
        "looks",
        `looks[${index}] is ${information} after ${looks[index - 1]}; expected more, by a ten-thousandth of the last.`,
      );
    }
  }
}

function refuse(param: string, message: string): never {
  throw new OctavoError("invalid_option", message, { param });
}

function spentBy(fraction: number, alpha: number, spending: AlphaSpending): number {
  if (spending === "pocock") return alpha * Math.log1p((Math.E - 1) * fraction);
  if (spending === "obrien-fleming") {
    return 2 * normalTail(normalQuantile(1 - alpha / 2) / Math.sqrt(fraction));
  }
  return alpha * fraction ** spending.power;
}

/** The z statistic's density at a look among those who have not stopped, times quadrature weights. */
interface Density {
  readonly fraction: number;
  readonly nodes: Float64Array;
  readonly masses: Float64Array;
}

/** The z whose chance of being exceeded at this look, by those who went on so far, is `probability`. */
function boundary(before: Density | undefined, fraction: number, probability: number): number {
  if (probability < 1e-250) return Infinity;
  if (!before) return -normalQuantile(probability);
  const step = Math.sqrt(fraction - before.fraction);
  const scale = Math.sqrt(fraction);
  const previous = Math.sqrt(before.fraction);
  const crossing = (z: number): number => {
    let sum = 0;
    for (let i = 0; i < before.nodes.length; i++) {
      const distance = (z * scale - before.nodes[i]! * previous) / step;
      sum += before.masses[i]! * (distance > 0 ? normalTail(distance) : 1 - normalTail(distance));
    }
    return sum;
  };
  const target = Math.log(probability);
  return findRoot((z) => target - Math.max(-1e4, Math.log(crossing(z))), -normalQuantile(probability));
}

function advance(
  before: Density | undefined,
  fraction: number,
  z: number,
  sides: 1 | 2,
  nextFraction: number,
): Density {
  const high = Math.min(z, farEnd);
  const low = sides === 2 ? -high : -farEnd;
  const step = before ? Math.sqrt((fraction - before.fraction) / fraction) : 1;
  // The density varies over `step`, what it is integrated against at the next look over the following.
  const following = Math.sqrt(Math.max(0, nextFraction - fraction) / fraction);
  const width = Math.min(1, step, following === 0 ? 1 : following);
  const { nodes, weights } = gaussLegendre(low, high, Math.ceil((high - low) / width));
  const masses = weights.map((weight, i) => weight * densityAt(before, fraction, nodes[i]!));
  return { fraction, nodes, masses };
}

function densityAt(before: Density | undefined, fraction: number, z: number): number {
  const norm = Math.sqrt(2 * Math.PI);
  if (!before) return Math.exp((-z * z) / 2) / norm;
  const step = Math.sqrt(fraction - before.fraction);
  const scale = Math.sqrt(fraction);
  const previous = Math.sqrt(before.fraction);
  let sum = 0;
  // Nodes ascend: only those from which one comes here within `farEnd` steps count.
  for (
    let i = firstAtLeast(before.nodes, (z * scale - farEnd * step) / previous);
    i < before.nodes.length;
    i++
  ) {
    const distance = (z * scale - before.nodes[i]! * previous) / step;
    if (distance < -farEnd) break;
    sum += before.masses[i]! * Math.exp((-distance * distance) / 2);
  }
  return (sum * scale) / (step * norm);
}

function firstAtLeast(ascending: Float64Array, value: number): number {
  let low = 0;
  let high = ascending.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (ascending[middle]! < value) low = middle + 1;
    else high = middle;
  }
  return low;
}
