import { OctavoError } from "@octavo/protocol";

/** Cells of the table, 32 of which are filled at a time: some 0.3 s, and two texts of 44,000 characters. */
const maxCells = 2e9;

/**
 * One minus Levenshtein's distance over the longer length, by code points: 1 for equal texts, 0 where nothing agrees.
 * @throws OctavoError `payload_too_large` where the lengths' product, without what both begin and end with, is over 2e9
 */
export function similarity(a: string, b: string): number {
  const left = codePoints(a);
  const right = codePoints(b);
  const longest = Math.max(left.length, right.length);
  return longest === 0 ? 1 : 1 - distance(left, right) / longest;
}

function codePoints(text: string): Uint32Array {
  const points = new Uint32Array(text.length);
  let count = 0;
  for (const character of text) points[count++] = character.codePointAt(0)!;
  return points.subarray(0, count);
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
  if (rows.length === 0 || columns.length === 0) return Math.max(rows.length, columns.length);
  return bitParallel(rows, columns);
}

/**
 * Myers' bit-vector algorithm (1999) in blocks of 32 rows, with Hyyrö's carries (2003): each bit says that a row of the
 * current column is one more, or one less, than the row above it.
 */
function bitParallel(rows: Uint32Array, columns: Uint32Array): number {
  const numBlocks = Math.ceil(rows.length / 32);
  const places = new Map<number, Int32Array>();
  for (const [row, character] of rows.entries()) {
    const known = places.get(character) ?? new Int32Array(numBlocks);
    known[row >>> 5]! |= 1 << (row & 31);
    places.set(character, known);
  }
  const nowhere = new Int32Array(numBlocks);
  const more = new Int32Array(numBlocks).fill(-1);
  const less = new Int32Array(numBlocks);
  const lastBlock = numBlocks - 1;
  const lastBit = (rows.length - 1) & 31;
  let cost = rows.length;
  for (const character of columns) {
    const equal = places.get(character) ?? nowhere;
    // what comes in from above: the first row of each column is one more than that of the column before
    let carryMore = 1;
    let carryLess = 0;
    for (let block = 0; block < numBlocks; block++) {
      const wasMore = more[block]!;
      const wasLess = less[block]!;
      const isEqual = equal[block]!;
      const vertical = isEqual | wasLess;
      const matching = isEqual | carryLess;
      const horizontal = ((((matching & wasMore) + wasMore) | 0) ^ wasMore) | matching;
      let up = wasLess | ~(horizontal | wasMore);
      let down = wasMore & horizontal;
      if (block === lastBlock) cost += ((up >>> lastBit) & 1) - ((down >>> lastBit) & 1);
      const nextMore = up >>> 31;
      const nextLess = down >>> 31;
      up = (up << 1) | carryMore;
      down = (down << 1) | carryLess;
      more[block] = down | ~(vertical | up);
      less[block] = up & vertical;
      carryMore = nextMore;
      carryLess = nextLess;
    }
  }
  return cost;
}
