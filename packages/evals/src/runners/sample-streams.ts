import type { Evaluator, Sample } from "../evaluators/evaluator.js";

/** Each sample with each evaluator. */
export async function* pairsOf(
  samples: AsyncIterable<Sample> | Iterable<Sample>,
  evaluators: readonly Evaluator[],
): AsyncGenerator<readonly [Sample, Evaluator], void, undefined> {
  for await (const sample of samples) for (const evaluator of evaluators) yield [sample, evaluator];
}

/** A stream of items in lists of `size`; the last one has what is left. */
export async function* batchesOf<Item>(
  items: AsyncIterable<Item> | Iterable<Item>,
  size: number,
): AsyncGenerator<readonly Item[], void, undefined> {
  let batch: Item[] = [];
  for await (const item of items) {
    batch.push(item);
    if (batch.length < size) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}
