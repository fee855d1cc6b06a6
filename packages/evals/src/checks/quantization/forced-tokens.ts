import type { Chart } from "../check.js";
import { comparePaired, type PairedScore } from "../judging/paired-comparison.js";
import type { Pair } from "../judging/pairs.js";
import { points } from "../judging/loss-effect.js";

/** What of a check's result comes from a fixed text run through both sides token by token. */
interface ForcedComparison {
  readonly figures: readonly Chart[];
  readonly notes: readonly string[];
}

interface RoleTokens {
  readonly firstChoices: PairedScore[];
  /** Sum of what the logprobs lost. */
  logprobLoss: number;
}

/**
 * By role of the token: how often the baseline's first choice is no longer the candidate's, and what the text's logprobs
 * lost. Shown to find where a variant differs; it decides nothing. Tokens of one case are a cluster.
 */
export function compareForced(pairs: readonly Pair[], confidence: number): ForcedComparison {
  const roles = new Map<string, RoleTokens>();
  let unequal = 0;
  for (const { before, after, cluster } of pairs) {
    if (before.forced === undefined || after.forced === undefined) continue;
    if (before.forced.length !== after.forced.length) {
      unequal++;
      continue;
    }
    for (const [index, left] of before.forced.entries()) {
      const right = after.forced[index]!;
      const own = roles.get(left.role) ?? { firstChoices: [], logprobLoss: 0 };
      own.firstChoices.push({ cluster, before: Number(left.rank === 1), after: Number(right.rank === 1) });
      own.logprobLoss += left.logprob - right.logprob;
      roles.set(left.role, own);
    }
  }
  const notes: string[] = [];
  if (unequal > 0)
    notes.push(`${unequal} cases have forced texts of different lengths: they were not the same text`);
  const rows = [...roles].flatMap(([role, { firstChoices, logprobLoss }]) => {
    const compared = comparePaired(firstChoices);
    const interval = compared?.intervalAt(confidence);
    if (compared === undefined) return [];
    const { lost, gained, count, loss } = compared;
    notes.push(
      `forced tokens, ${role}: ${lost} of ${count} first choices flipped away from the text (${points(lost / count)} %), ${gained} towards it; ${(logprobLoss / count).toFixed(4)} nats lost per token`,
    );
    if (interval === undefined) return [];
    return [{ label: role, estimate: loss, interval }];
  });
  const title = "First choices lost along a fixed text, by role of the token";
  return { figures: rows.length === 0 ? [] : [{ kind: "intervals", title, unit: "share", rows }], notes };
}
