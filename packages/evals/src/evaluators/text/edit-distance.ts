import { OctavoError } from "@octavo/protocol";

/** Cells of the table that are filled at most: some 0.3 s, and two texts of 14,000 characters. */
const maxCells = 2e8;

/**
 * One minus Levenshtein's distance over the longer length, by code points: 1 for equal texts, 0 where nothing agrees.
 * @throws OctavoError `payload_too_large` where the lengths' product is over 2e8
 */
export function similarity(a: string, b: string): number {
  const left = codePoints(a);
  const right = codePoints(b);
  const longest = Math.max(left.length, right.length);
  return longest === 0 ? 1 : 1 - distance(left, right) / longest;
}

function codePoints(text: string): Uint32Array {
  return Uint32Array.from(text, (character) => character.codePointAt(0)!);
}

function distance(a: Uint32Array, b: Uint32Array): number {
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let endA = a.length;
  let endB = b.length;
  while (endA > start && endB > start && a[endA - 1] === b[endB - 1]) {
    endA--;
    endB--;
  }
  const rows = a.subarray(start, endA);
  const columns = b.subarray(start, endB);
  if (rows.length * columns.length > maxCells) {
    throw new OctavoError(
      "payload_too_large",
      `texts of ${a.length} and ${b.length} characters are too long to be compared by edit distance`,
    );
  }
  // costs[j] is the distance of the rows so far to the first j columns
  const costs = Uint32Array.from({ length: columns.length + 1 }, (_, index) => index);
  for (let i = 0; i < rows.length; i++) {
    let diagonal = costs[0]!;
    let before = (costs[0] = i + 1);
    const row = rows[i]!;
    for (let j = 0; j < columns.length; j++) {
      const above = costs[j + 1]!;
      const cost = Math.min(above + 1, before + 1, row === columns[j] ? diagonal : diagonal + 1);
      diagonal = above;
      costs[j + 1] = before = cost;
    }
  }
  return costs[columns.length]!;
}
