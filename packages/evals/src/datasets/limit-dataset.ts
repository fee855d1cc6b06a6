import { OctavoError } from "@octavo/protocol";
import { Random } from "@octavo/statistics";
import type { EvalCase } from "../cases/eval-case.js";
import type { Dataset } from "./dataset.js";

/** More kinds than this in a file, such as tags that name each case, and the rest count as one. */
const mostKinds = 1000;

/**
 * A sample of `limit` cases in the dataset's order, the same for the same seed: each kind of case (its tags, its tools, what
 * it expects) has its share of it, and at least one where there are places enough. The dataset is read once more to draw it.
 *
 * @throws OctavoError `invalid_option`
 */
export function limitDataset(dataset: Dataset, limit: number, seed = 1): Dataset {
  if (!Number.isInteger(limit) || limit < 1) {
    throw new OctavoError("invalid_option", `limit: expected a whole number above 0, got ${limit}`, {
      param: "limit",
    });
  }
  const { name, size, skipped } = dataset;
  let drawn: Promise<ReadonlySet<number>> | undefined;
  return {
    name,
    size: size === undefined ? undefined : Math.min(size, limit),
    async *cases() {
      const chosen = await (drawn ??= drawPlaces(dataset.cases(), limit, new Random(seed)));
      let place = 0;
      let left = chosen.size;
      for await (const evalCase of dataset.cases()) {
        if (!chosen.has(place++)) continue;
        yield evalCase;
        if (--left === 0) return;
      }
    },
    ...(skipped !== undefined && { skipped }),
  };
}

async function drawPlaces(
  cases: AsyncIterable<EvalCase>,
  limit: number,
  random: Random,
): Promise<ReadonlySet<number>> {
  const places = new Map<string, number[]>();
  let count = 0;
  for await (const evalCase of cases) {
    const kind = kindOf(evalCase);
    const known = places.has(kind) || places.size < mostKinds ? kind : "";
    const own = places.get(known);
    if (own === undefined) places.set(known, [count++]);
    else own.push(count++);
  }
  if (count <= limit) return new Set(Array.from({ length: count }, (_, place) => place));
  const kinds = [...places.values()];
  const shares = sharesOf(
    kinds.map(({ length }) => length),
    limit,
    random,
  );
  return new Set(kinds.flatMap((own, index) => random.shuffle(own).slice(0, shares[index])));
}

/** Proportional, by largest remainder with ties drawn; at least one each where there are places for all. */
function sharesOf(sizes: readonly number[], limit: number, random: Random): readonly number[] {
  const least = sizes.length <= limit ? 1 : 0;
  const total = sizes.reduce((sum, size) => sum + size, 0);
  const exact = sizes.map((size) => (size * limit) / total);
  const shares = exact.map((share) => Math.max(least, Math.floor(share)));
  const order = random.shuffle(sizes.map((_, index) => index));
  const short = (index: number): number => exact[index]! - shares[index]!;
  for (let sum = shares.reduce((all, share) => all + share, 0); sum !== limit; sum += sum < limit ? 1 : -1) {
    const step = sum < limit ? 1 : -1;
    let best: number | undefined;
    for (const index of order) {
      const isPossible = step > 0 ? shares[index]! < sizes[index]! : shares[index]! > least;
      if (isPossible && (best === undefined || step * (short(index) - short(best)) > 0)) best = index;
    }
    shares[best!]! += step;
  }
  return shares;
}

function kindOf({ tags, tools, context, expected }: EvalCase): string {
  return JSON.stringify([
    tags.toSorted(),
    tools.length > 0,
    context !== undefined,
    Object.keys(expected).toSorted(),
  ]);
}
