/** Code points as inclusive ranges, ascending and apart: `[first, last, first, last, ...]`. */
export type CodeSet = readonly number[];

export const lastCodePoint = 0x10ffff;
export const anyCodePoint: CodeSet = [0, lastCodePoint];

function codeSet(ranges: readonly (readonly [number, number])[]): CodeSet {
  const sorted = ranges.toSorted((a, b) => a[0] - b[0]);
  const merged: number[] = [];
  for (const [first, last] of sorted) {
    const end = merged.length - 1;
    if (end > 0 && first <= merged[end]! + 1) merged[end] = Math.max(merged[end]!, last);
    else merged.push(first, last);
  }
  return merged;
}

export function unite(...sets: readonly CodeSet[]): CodeSet {
  return codeSet(sets.flatMap(pairs));
}

export function complement(set: CodeSet): CodeSet {
  const result: number[] = [];
  let next = 0;
  for (const [first, last] of pairs(set)) {
    if (first > next) result.push(next, first - 1);
    next = last + 1;
  }
  if (next <= lastCodePoint) result.push(next, lastCodePoint);
  return result;
}

export function intersect(a: CodeSet, b: CodeSet): CodeSet {
  return complement(unite(complement(a), complement(b)));
}

export function pairs(set: CodeSet): (readonly [number, number])[] {
  const result: [number, number][] = [];
  for (let index = 0; index < set.length; index += 2) result.push([set[index]!, set[index + 1]!]);
  return result;
}
