import type { Random } from "@octavo/statistics";
import { z } from "zod";
import { type Candidate, candidateKey } from "../artifact/candidate.js";
import { partText, type Search, traces, type Validated } from "../search/search.js";
import { defineOptimizer } from "./optimizer.js";
import { paretoFront, sampleFront } from "./pareto.js";

const gepaOptions = z.strictObject({
  /** Reflections, whether they led to something or not. */
  rounds: z.int().min(1).max(100_000).default(1000),
  minibatch: z.int().min(1).max(1000).default(3),
  /** Joins two candidates of the front that changed different parts since a common ancestor. */
  merge: z.boolean().default(true),
  merges: z.int().min(0).max(1000).default(5),
  /** Validation cases by which a merged candidate is tried first. */
  merge_batch: z.int().min(1).max(1000).default(5),
});

/** A validated candidate with those it came from. */
interface Member {
  readonly validated: Validated;
  readonly parents: readonly number[];
}

/** Reflection on traces, accepted by a minibatch, and a front of candidates that are each best at something. */
export const gepa = defineOptimizer({
  name: "gepa",
  description: "Parents from the Pareto front of cases, reflection on their traces, merging of lineages.",
  paper:
    "Agrawal et al. 2025, GEPA: Reflective Prompt Evolution Can Outperform Reinforcement Learning (arXiv 2507.19457)",
  options: gepaOptions,
  async run(search, options) {
    const [seed] = await search.validate([search.seed], "seed");
    if (seed === undefined) return;
    const members: Member[] = [{ validated: seed, parents: [] }];
    const nextPart = new Map<number, number>();
    const tried = new Set<string>();
    let mergesDue = 0;
    let numMerged = 0;
    for (let round = 0; round < options.rounds; round += 1) {
      const fronts = paretoFront(members.map(({ validated }) => validated.results.map(({ score }) => score)));
      if (options.merge && mergesDue > 0 && numMerged < options.merges) {
        mergesDue -= 1;
        const merged = await merge(search, members, fronts, tried, options.merge_batch);
        if (merged !== undefined) {
          members.push(merged);
          numMerged += 1;
          continue;
        }
      }
      const parent = sampleFront(fronts, search.random);
      const { candidate } = members[parent]!.validated;
      // each candidate's parts take turns
      const turn = nextPart.get(parent) ?? 0;
      nextPart.set(parent, turn + 1);
      const part = search.parts[turn % search.parts.length]!;
      const minibatch = search.sample(options.minibatch, candidate);
      const [before = []] = await search.score([candidate], minibatch);
      if (before.every(({ score }) => score >= 1)) continue;
      const question = [
        partText(candidate, part),
        "This is what a model made of it:",
        traces(minibatch, before),
        "Write a new text. Read what went wrong and why, take up facts of the task that the cases show, and keep what worked.",
      ].join("\n\n");
      const [child] = await search.rewritten(candidate, part, question);
      if (child === undefined) continue;
      const [after = []] = await search.score([child], minibatch);
      if (sumOf(after) <= sumOf(before)) continue;
      const [validated] = await search.validate([child], "reflection");
      if (validated === undefined) continue;
      members.push({ validated, parents: [parent] });
      mergesDue += 1;
    }
  },
});

/** A candidate of two of the front that share an ancestor: from each what it changed, where both did from the better one. */
async function merge(
  search: Search,
  members: readonly Member[],
  fronts: readonly ReadonlySet<number>[],
  tried: Set<string>,
  batchSize: number,
): Promise<Member | undefined> {
  const leaders = [...new Set(fronts.flatMap((front) => [...front]))].toSorted((a, b) => a - b);
  const pairs = leaders.flatMap((one) =>
    leaders.filter((other) => other > one).map((other) => [one, other] as const),
  );
  for (const [one, other] of search.random.shuffle(pairs)) {
    const [left, right] = [members[one]!.validated, members[other]!.validated];
    const ancestor = commonAncestor(members, one, other, search.random);
    if (ancestor === undefined) continue;
    const joined = join(
      members[ancestor]!.validated.candidate,
      left,
      right,
      search.parts.map(({ id }) => id),
    );
    const key = joined && candidateKey(joined);
    if (joined === undefined || key === undefined || tried.has(key) || search.isKnown(joined)) continue;
    tried.add(key);
    const places = search.random.shuffle([...search.validation.keys()]).slice(0, batchSize);
    const [results = []] = await search.score(
      [joined],
      places.map((at) => search.validation[at]!),
    );
    const parentSum = ({ results: all }: Validated): number => sumOf(places.map((at) => all[at]!));
    if (sumOf(results) < Math.max(parentSum(left), parentSum(right))) return undefined;
    const [validated] = await search.validate([joined], "merged");
    return validated && { validated, parents: [one, other] };
  }
  return undefined;
}

/** A common ancestor of both, unless one descends from the other. */
function commonAncestor(
  members: readonly Member[],
  one: number,
  other: number,
  random: Random,
): number | undefined {
  const [of, others] = [ancestorsOf(members, one), ancestorsOf(members, other)];
  if (of.has(other) || others.has(one)) return undefined;
  const common = [...of].filter((index) => others.has(index));
  return common.length === 0 ? undefined : random.pick(common);
}

function ancestorsOf(members: readonly Member[], index: number): ReadonlySet<number> {
  const found = new Set<number>();
  const waiting = [...members[index]!.parents];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    if (found.has(next)) continue;
    found.add(next);
    waiting.push(...members[next]!.parents);
  }
  return found;
}

/** Undefined where one of the two brings nothing that the other lacks. */
function join(
  ancestor: Candidate,
  left: Validated,
  right: Validated,
  parts: readonly string[],
): Candidate | undefined {
  const [better, worse] = left.score >= right.score ? [left, right] : [right, left];
  const changed = (candidate: Candidate, part: string): boolean =>
    candidate.texts[part] !== ancestor.texts[part];
  const fromWorse = parts.filter(
    (part) => changed(worse.candidate, part) && !changed(better.candidate, part),
  );
  const fromBetter = parts.some((part) => changed(better.candidate, part));
  if (fromWorse.length === 0 || !fromBetter) return undefined;
  const taken = Object.fromEntries(fromWorse.map((part) => [part, worse.candidate.texts[part] ?? ""]));
  return { ...better.candidate, texts: { ...better.candidate.texts, ...taken } };
}

function sumOf(results: readonly { readonly score: number }[]): number {
  return results.reduce((sum, { score }) => sum + score, 0);
}
