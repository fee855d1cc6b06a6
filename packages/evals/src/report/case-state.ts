import type { CaseRow, ScoredAnswer } from "../run/case-row.js";

/** What became of a case between the baseline and the candidate, worst first; `passing`: there is no baseline. */
export const caseStates = ["regressed", "failing", "improved", "changed", "passing", "same"] as const;
export type CaseState = (typeof caseStates)[number];

export function caseState(row: CaseRow): CaseState {
  const candidate = row.answers["candidate"] ?? Object.values(row.answers)[0];
  const baseline = row.answers["baseline"];
  if (candidate === undefined) return "passing";
  const failing = isFailing(candidate);
  if (baseline === undefined || baseline === candidate) return failing ? "failing" : "passing";
  const names = new Set([...Object.keys(candidate.scores), ...Object.keys(baseline.scores)]);
  const lost = [...names].some(
    (name) => passed(baseline, name) === true && passed(candidate, name) === false,
  );
  if (lost || (candidate.answer.failure !== undefined && baseline.answer.failure === undefined))
    return "regressed";
  if (failing) return "failing";
  if ([...names].some((name) => passed(baseline, name) === false && passed(candidate, name) === true))
    return "improved";
  return answerText(baseline) === answerText(candidate) ? "same" : "changed";
}

/** The text and the calls as one. */
export function answerText({ answer }: ScoredAnswer): string {
  const calls = answer.toolCalls.map(({ name, arguments: input }) => `${name}(${input})`);
  const failure = answer.failure === undefined ? [] : [`[${answer.failure.code}] ${answer.failure.message}`];
  return [...(answer.text === "" ? [] : [answer.text]), ...calls, ...failure].join("\n");
}

function passed({ scores: all }: ScoredAnswer, name: string): boolean | undefined {
  const score = all[name];
  return score?.status === "scored" ? score.passed : undefined;
}

function isFailing(scored: ScoredAnswer): boolean {
  return (
    scored.answer.failure !== undefined ||
    Object.keys(scored.scores).some((name) => passed(scored, name) === false)
  );
}
