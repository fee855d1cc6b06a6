import type { Observation } from "../observation.js";

/** One case under two conditions. */
export interface Pair {
  readonly caseId: string;
  readonly cluster: string;
  readonly tags: readonly string[];
  readonly before: Observation;
  readonly after: Observation;
}

export interface Pairing {
  readonly pairs: readonly Pair[];
  /** Share of the cases sent under either condition that lack an answer under both; a failed request is no answer. */
  readonly missingShare: number;
  readonly notes: readonly string[];
}

/** One evaluator's scores of one case under two conditions. */
export interface ScorePair {
  readonly pair: Pair;
  readonly before: number;
  readonly after: number;
}

/**
 * Answers to one case under two conditions, whatever order they came in. A case that was sent several times is paired in
 * the order of sending, and is a cluster, since its answers are not independent. Failed requests are no answers.
 */
export function pairConditions(observations: readonly Observation[], before: string, after: string): Pairing {
  const befores = answersByCase(observations, before);
  const afters = answersByCase(observations, after);
  const pairs: Pair[] = [];
  let unpaired = 0;
  const answered = new Set([...befores.keys(), ...afters.keys()]);
  for (const caseId of answered) {
    const left = befores.get(caseId) ?? [];
    const right = afters.get(caseId) ?? [];
    const count = Math.min(left.length, right.length);
    unpaired += Math.max(left.length, right.length) - count;
    for (let i = 0; i < count; i++) {
      const [one, other] = [left[i]!, right[i]!];
      pairs.push({
        caseId,
        cluster: one.cluster ?? other.cluster ?? caseId,
        tags: [...new Set([...one.tags, ...other.tags])],
        before: one,
        after: other,
      });
    }
  }
  const failed = observations.filter(
    ({ condition, failureCode }) =>
      failureCode !== undefined && (condition === before || condition === after),
  );
  const notes: string[] = [];
  for (const [name, cases] of [
    [before, befores],
    [after, afters],
  ] as const) {
    if (cases.size === 0) notes.push(`there is no answer under the condition ${JSON.stringify(name)}`);
  }
  if (failed.length > 0) {
    const codes = [...new Set(failed.map(({ failureCode }) => failureCode))].slice(0, 4).join(", ");
    notes.push(`${failed.length} requests failed (${codes}): their cases are not compared`);
  }
  if (unpaired > 0 && befores.size > 0 && afters.size > 0)
    notes.push(`${unpaired} answers have none to the same case under the other condition: left out`);
  const unanswered = new Set(failed.map(({ caseId }) => caseId).filter((caseId) => !answered.has(caseId)))
    .size;
  const seen = pairs.length + unpaired + unanswered;
  return { pairs, missingShare: seen === 0 ? 1 : (unpaired + unanswered) / seen, notes };
}

/** Pairs that the evaluator scored on both sides, and how many it scored on one side only. */
export function scorePairs(
  pairs: readonly Pair[],
  evaluator: string,
): { readonly scored: readonly ScorePair[]; readonly oneSided: number } {
  const scored: ScorePair[] = [];
  let oneSided = 0;
  for (const pair of pairs) {
    const before = pair.before.scores[evaluator] ?? undefined;
    const after = pair.after.scores[evaluator] ?? undefined;
    if (before !== undefined && after !== undefined) scored.push({ pair, before, after });
    else if (before !== undefined || after !== undefined) oneSided++;
  }
  return { scored, oneSided };
}

/** Names of the evaluators that scored anything, in order of appearance. */
export function evaluatorsOf(observations: readonly Observation[]): readonly string[] {
  const names = new Set<string>();
  for (const { scores } of observations)
    for (const [name, value] of Object.entries(scores)) if (value !== null) names.add(name);
  return [...names];
}

function answersByCase(
  observations: readonly Observation[],
  condition: string,
): ReadonlyMap<string, readonly Observation[]> {
  const cases = new Map<string, Observation[]>();
  for (const observation of observations) {
    if (observation.condition !== condition || observation.failureCode !== undefined) continue;
    const answers = cases.get(observation.caseId) ?? [];
    answers.push(observation);
    cases.set(observation.caseId, answers);
  }
  for (const answers of cases.values()) answers.sort((a, b) => a.scheduledEpochMs - b.scheduledEpochMs);
  return cases;
}
