/**
 * What a report must warn of: a model that judges its own answers prefers them (self-preference, arXiv 2404.13076), and
 * shares its blind spots. Undefined where judge and models differ, or there is no judge.
 */
export function selfJudgingWarning(
  judge: string | undefined,
  models: Iterable<string | undefined>,
): string | undefined {
  if (judge === undefined || ![...models].some((model) => model !== undefined && isSame(model, judge)))
    return undefined;
  return `${judge} judges its own answers: models prefer what they wrote; use another model as the judge`;
}

function isSame(one: string, other: string): boolean {
  return one.trim().toLowerCase() === other.trim().toLowerCase();
}
