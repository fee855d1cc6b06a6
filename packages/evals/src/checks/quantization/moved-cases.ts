import type { MovedCase } from "../check.js";
import type { ScorePair } from "../judging/pairs.js";

/** Cases whose scores changed; a case that moved on several scores is listed once. */
export function movedCases(
  axes: readonly { readonly name: string; readonly scored: readonly ScorePair[] }[],
): readonly MovedCase[] {
  const moved = new Map<string, { what: string[]; severity: number; pair: ScorePair["pair"] }>();
  for (const { name, scored } of axes) {
    for (const { pair, before, after } of scored) {
      if (before === after) continue;
      const own = moved.get(pair.caseId) ?? { what: [], severity: 0, pair };
      own.what.push(`${name}: ${rounded(before)} → ${rounded(after)}`);
      own.severity += before - after;
      moved.set(pair.caseId, own);
    }
  }
  return [...moved].map(([caseId, { what, severity, pair }]) => ({
    caseId,
    what: what.join("; "),
    before: pair.before.output,
    after: pair.after.output,
    severity,
  }));
}

function rounded(score: number): string {
  return String(Math.round(score * 100) / 100);
}
