import { OctavoError } from "@octavo/protocol";

/** Cells of the table, 32 of which are filled at a time: some 0.3 s, and two texts of 44,000 characters. */
const maxCells = 2e9;

/**
 * How alike two texts are, by code points: 1 for equal texts, 0 where nothing agrees. `levenshtein` is one minus the edits
 * (insertions, deletions, substitutions) over the longer length, rapidfuzz's `Levenshtein.normalized_similarity`; `indel`
 * is one minus insertions and deletions over both lengths, rapidfuzz's `fuzz.ratio` from 0 to 1.
 * @throws OctavoError `payload_too_large` where the lengths' product, without what both begin and end with, is over 2e9
 */
export function similarity(a: string, b: string, rule: SimilarityRule = "levenshtein"): number {
  const left = codePoints(a);
  const right = codePoints(b);
  const most = rule === "indel" ? left.length + right.length : Math.max(left.length, right.length);
  return most === 0 ? 1 : 1 - distance(left, right, rule) / most;
}

export const similarityRules = ["levenshtein", "indel"] as const;
type SimilarityRule = (typeof similarityRules)[number];

function codePoints(text: string): Uint32Array {
  const points = new Uint32Array(text.length);
  let count = 0;
  for (const character of text) points[count++] = character.codePointAt(0)!;
  return points.subarray(0, count);
}

function distance(a: Uint32Array, b: Uint32Array, rule: SimilarityRule): number {
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
  if (rule === "indel") return rows.length + columns.length - 2 * commonLength(rows, columns);
  return bitParallel(rows, columns);
}

/** Edits that make one list of items the other: insertions, deletions and substitutions, as word error rate counts them. */
export function editsBetween(a: readonly string[], b: readonly string[]): number {
  const ids = new Map<string, number>();
  const numbered = (items: readonly string[]): Uint32Array =>
    Uint32Array.from(items, (item) => {
      const id = ids.get(item) ?? ids.size;
      ids.set(item, id);
      return id;
    });
  return distance(numbered(a), numbered(b), "levenshtein");
}

/** Length of a longest common subsequence: Hyyrö's bit-vector algorithm (2004) in blocks of 32 rows, a zero bit per match. */
function commonLength(rows: Uint32Array, columns: Uint32Array): number {
  const places = placesOf(rows);
  const open = new Int32Array(Math.ceil(rows.length / 32)).fill(-1);
  for (const character of columns) {
    const equal = places.get(character);
    if (equal === undefined) continue;
    let carry = 0;
    for (const [block, wasOpen] of open.entries()) {
      const matched = wasOpen & equal[block]!;
      const sum = (wasOpen >>> 0) + (matched >>> 0) + carry;
      carry = sum > 0xffffffff ? 1 : 0;
      open[block] = sum | 0 | (wasOpen & ~matched);
    }
  }
  let length = 0;
  for (let row = 0; row < rows.length; row++) length += (~open[row >>> 5]! >>> (row & 31)) & 1;
  return length;
}

/** For each item the rows at which it stands, a bit each. */
function placesOf(rows: Uint32Array): Map<number, Int32Array> {
  const places = new Map<number, Int32Array>();
  for (const [row, character] of rows.entries()) {
    const known = places.get(character) ?? new Int32Array(Math.ceil(rows.length / 32));
    known[row >>> 5]! |= 1 << (row & 31);
    places.set(character, known);
  }
  return places;
}

/**
 * Myers' bit-vector algorithm (1999) in blocks of 32 rows, with Hyyrö's carries (2003): each bit says that a row of the
 * current column is one more, or one less, than the row above it.
 */
function bitParallel(rows: Uint32Array, columns: Uint32Array): number {
  const numBlocks = Math.ceil(rows.length / 32);
  const places = placesOf(rows);
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
