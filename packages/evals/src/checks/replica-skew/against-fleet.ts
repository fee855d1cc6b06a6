import type { Look } from "../judging/sequence-bounds.js";
import { comparePaired, type PairedComparison, type PairedScore } from "../judging/paired-comparison.js";
import type { Fleet } from "./fleet.js";

/** One replica's scores of one evaluator against those of the others on the same cases. */
export interface AgainstFleet {
  readonly replica: string;
  readonly evaluator: string;
  readonly compared: PairedComparison;
  /** Exact, one-sided: small where the replica is worse. Undefined for graded scores, and where cases are looked at as they come. */
  readonly exactPValue: number | undefined;
  /** Cases that it lost while the others had them right, on the whole. */
  readonly lostCases: readonly LostCase[];
}

interface LostCase {
  readonly caseId: string;
  readonly own: number;
  readonly others: number;
}

/**
 * A replica is held against the mean of the others, case by case. The majority of the others would be a better model than
 * any one of them where answers are unstable, and a healthy replica would lose to it.
 */
export function compareAgainstFleet(fleet: Fleet, evaluator: string, look: Look): readonly AgainstFleet[] {
  return fleet.replicas.flatMap((replica) => {
    const scores: PairedScore[] = [];
    const strata: { own: number; right: number; of: number }[] = [];
    const lostCases: LostCase[] = [];
    let isBinary = true;
    for (const { caseId, cluster, answers } of fleet.cases) {
      const own = answers.get(replica)?.scores[evaluator] ?? undefined;
      const others = [...answers].flatMap(([name, answer]) => {
        const value = answer.scores[evaluator] ?? undefined;
        return name === replica || value === undefined ? [] : [value];
      });
      if (own === undefined || others.length === 0) continue;
      const sum = others.reduce((all, value) => all + value, 0);
      const mean = sum / others.length;
      scores.push({ cluster, before: mean, after: own });
      if (mean > own) lostCases.push({ caseId, own, others: mean });
      isBinary &&= [own, ...others].every((value) => value === 0 || value === 1);
      strata.push({ own, right: sum + own, of: others.length + 1 });
    }
    const compared = comparePaired(scores, look);
    if (compared === undefined) return [];
    const isIndependent = compared.numClusters === compared.count;
    return [
      {
        replica,
        evaluator,
        compared,
        exactPValue: isBinary && isIndependent && look === "once" ? exactTest(strata) : undefined,
        lostCases: lostCases.toSorted((a, b) => b.others - b.own - (a.others - a.own)),
      },
    ];
  });
}

/**
 * McNemar's exact test for a replica among several: where all are alike, each case's right answers fall on any of them, so
 * that this one is right with probability (right / replicas), independently of other cases. The chance that it is right as
 * seldom as it was is a tail of a Poisson-binomial distribution (Cochran's conditional argument, 1950); with two replicas it
 * is McNemar's.
 */
function exactTest(
  strata: readonly { readonly own: number; readonly right: number; readonly of: number }[],
): number {
  const open = strata.filter(({ right, of }) => right > 0 && right < of);
  const seen = open.reduce((sum, { own }) => sum + own, 0);
  let chances = [1];
  for (const { right, of } of open) {
    const share = right / of;
    const next = Array.from({ length: chances.length + 1 }, () => 0);
    for (const [count, chance] of chances.entries()) {
      next[count] = next[count]! + chance * (1 - share);
      next[count + 1] = next[count + 1]! + chance * share;
    }
    chances = next;
  }
  return Math.min(
    1,
    chances.slice(0, seen + 1).reduce((sum, chance) => sum + chance, 0),
  );
}
