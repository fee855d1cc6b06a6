import { groupBy } from "@octavo/protocol";
import { Random } from "@octavo/statistics";
import type { EvalCase } from "../../cases/eval-case.js";
import type { Verdict } from "../check.js";
import type { TestBed } from "../test-bed.js";
import type { Observation } from "../observation.js";

/** How cases are sent where a check is looked at as they are answered. */
export interface LookPlan {
  /** Cases between two looks; a look waits for the end of a cluster. */
  readonly every: number;
  /** Tags of which the first that a case has decides what it counts for. */
  readonly axisTags: readonly string[];
}

interface CollectedInSequence {
  readonly observations: readonly Observation[];
  readonly notes: readonly string[];
}

/**
 * Sends cases a few at a time until the check is decided or there are no more. They go in an order drawn from the seed,
 * clusters in one piece: what a look sees is then a sample of all of them, and a resumed run sends the same ones. Nothing is
 * decided before cases of every kind were sent: of an axis that was never seen nothing is known, and how many axes there are
 * decides how the p values of all of them are adjusted.
 *
 * @param judge must allow for being asked after every few cases
 */
export async function collectUntilDecided(
  bed: TestBed,
  { every, axisTags }: LookPlan,
  collect: (bed: TestBed) => Promise<readonly Observation[]>,
  judge: (observations: readonly Observation[]) => Verdict,
): Promise<CollectedInSequence> {
  const observations: Observation[] = [];
  const scoredTags = new Set(bed.evaluators.flatMap(({ spec }) => spec?.tags ?? []));
  const kindOf = (evalCase: EvalCase): string =>
    JSON.stringify([
      axisTags.find((tag) => evalCase.tags.includes(tag)) ?? null,
      evalCase.tags.filter((tag) => scoredTags.has(tag)).toSorted(),
      whatEvaluatorsRead(evalCase),
    ]);
  const unseen = new Set(bed.cases.map(kindOf));
  let sent = 0;
  let requests = 0;
  let looks = 0;
  for (const cases of batches(bed, every)) {
    let last = 0;
    const part = await collect({
      ...bed,
      cases,
      onProgress({ done, total }) {
        last = done;
        // at the most: it may be decided before
        const most = total === undefined ? undefined : Math.ceil((total * bed.cases.length) / cases.length);
        bed.onProgress?.({ done: requests + done, total: most });
      },
    });
    requests += last;
    sent += cases.length;
    looks += 1;
    for (const one of part) observations.push(one);
    for (const evalCase of cases) unseen.delete(kindOf(evalCase));
    if (unseen.size === 0 && judge(observations) !== "inconclusive") break;
  }
  const outcome =
    sent < bed.cases.length
      ? `decided after ${sent} of ${bed.cases.length} cases: the others were not sent`
      : `all ${sent} cases were sent`;
  return { observations, notes: [`Looked at ${looks} times as cases were answered, ${outcome}.`] };
}

/** Cases that are alike in this are scored by the same evaluators. */
function whatEvaluatorsRead({ expected, tools, context }: EvalCase): readonly unknown[] {
  return [Object.keys(expected).toSorted(), tools.length > 0, context !== undefined];
}

function* batches({ cases, seed }: TestBed, every: number): Generator<readonly EvalCase[]> {
  const clusters = groupBy(cases, ({ id, cluster }) => JSON.stringify([cluster ?? null, cluster ?? id]));
  let batch: EvalCase[] = [];
  for (const cluster of new Random(seed).shuffle([...clusters.values()])) {
    for (const evalCase of cluster) batch.push(evalCase);
    if (batch.length < every) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}
