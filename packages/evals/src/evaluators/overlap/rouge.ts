import { OctavoError } from "@octavo/protocol";
import { countNgrams, overlapOf, totalOf } from "./ngrams.js";

/** Cells of tables of common subsequences that are filled at most. */
const maxCells = 5e7;
/** What a table costs beside its cells, in cells. */
const tableCost = 20;

export interface Rouge {
  readonly precision: number;
  readonly recall: number;
  readonly f: number;
}

/** Runs of a to z and digits in lower case: rouge-score's tokens, without its stemmer. */
function rougeTokens(text: string): string[] {
  return text.toLowerCase().match(/[a-z0-9]+/g) ?? [];
}

function rougeOf(matched: number, output: number, reference: number): Rouge {
  const precision = matched / Math.max(1, output);
  const recall = matched / Math.max(1, reference);
  const f = precision + recall > 0 ? (2 * precision * recall) / (precision + recall) : 0;
  return { precision, recall, f };
}

/** ROUGE-N (Lin, 2004): n-grams in common. */
export function rougeN(output: string, reference: string, order: number): Rouge {
  const mine = countNgrams(rougeTokens(output), order);
  const theirs = countNgrams(rougeTokens(reference), order);
  return rougeOf(overlapOf(mine, theirs), totalOf(mine), totalOf(theirs));
}

/** ROUGE-L: the longest common subsequence of the two texts. */
export function rougeL(output: string, reference: string): Rouge {
  const mine = rougeTokens(output);
  const theirs = rougeTokens(reference);
  requireCells(mine.length * theirs.length);
  let row = new Uint32Array(mine.length + 1);
  for (const token of theirs) {
    const next = new Uint32Array(mine.length + 1);
    for (let j = 0; j < mine.length; j++) {
      next[j + 1] = token === mine[j] ? row[j]! + 1 : Math.max(row[j + 1]!, next[j]!);
    }
    row = next;
  }
  return rougeOf(row[mine.length]!, mine.length, theirs.length);
}

/**
 * ROUGE-Lsum: for each line of the reference the union of its longest common subsequences with the output's lines, each
 * token counted as often as both texts have it (rouge-score's summary level).
 */
export function rougeLsum(output: string, reference: string): Rouge {
  const mine = linesOf(output);
  const theirs = linesOf(reference);
  const numMine = mine.flat().length;
  const numTheirs = theirs.flat().length;
  requireCells(numMine * numTheirs + tableCost * mine.length * theirs.length);
  const leftMine = countNgrams(mine.flat(), 1);
  const leftTheirs = countNgrams(theirs.flat(), 1);
  let hits = 0;
  for (const line of theirs) {
    const union = new Set(mine.flatMap((other) => commonPlaces(line, other)));
    for (const place of [...union].toSorted((a, b) => a - b)) {
      const token = line[place]!;
      const [here, there] = [leftMine.get(token) ?? 0, leftTheirs.get(token) ?? 0];
      if (here === 0 || there === 0) continue;
      hits++;
      leftMine.set(token, here - 1);
      leftTheirs.set(token, there - 1);
    }
  }
  return rougeOf(hits, numMine, numTheirs);
}

function linesOf(text: string): string[][] {
  return text
    .split("\n")
    .map(rougeTokens)
    .filter((tokens) => tokens.length > 0);
}

/** Places in `line` of a longest common subsequence with `other`; of several, the one that rouge-score walks back to. */
function commonPlaces(line: readonly string[], other: readonly string[]): number[] {
  const columns = other.length + 1;
  // row-major lengths of prefixes: line down, other across
  const lengths = new Uint32Array((line.length + 1) * columns);
  for (let i = 1; i <= line.length; i++) {
    for (let j = 1; j < columns; j++) {
      lengths[i * columns + j] =
        line[i - 1] === other[j - 1]
          ? lengths[(i - 1) * columns + j - 1]! + 1
          : Math.max(lengths[(i - 1) * columns + j]!, lengths[i * columns + j - 1]!);
    }
  }
  const places: number[] = [];
  for (let i = line.length, j = other.length; i > 0 && j > 0;) {
    if (line[i - 1] === other[j - 1]) {
      places.push(i - 1);
      i--;
      j--;
    } else if (lengths[i * columns + j - 1]! > lengths[(i - 1) * columns + j]!) j--;
    else i--;
  }
  return places;
}

function requireCells(cells: number): void {
  if (cells <= maxCells) return;
  throw new OctavoError(
    "payload_too_large",
    `the texts are too long for a common subsequence: it takes ${cells} cells, at most ${maxCells} are filled`,
  );
}
