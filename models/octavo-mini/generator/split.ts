import { hashText } from "./random.js";

export type Split = "train" | "heldout";

/**
 * Every entity (a name, a code, an invented word, a combination of templates) belongs to exactly one split, decided by a hash
 * of its text: no held-out value is ever seen in training, whatever the seeds.
 */
export function splitOf(entity: string): Split {
  return hashText(`split:${entity}`) % 5 === 0 ? "heldout" : "train";
}

export function inSplit(entities: readonly string[], split: Split): string[] {
  return entities.filter((entity) => splitOf(entity) === split);
}

/** Draws until the value belongs to the split. */
export function drawInSplit(split: Split, draw: () => string): string {
  for (let attempt = 0; attempt < 1000; attempt++) {
    const value = draw();
    if (splitOf(value) === split) return value;
  }
  throw new RangeError(`no value of the ${split} split in 1000 draws: the pool is too small`);
}
