import { type CodeSet, pairs } from "../regex/code-points.js";
import { byteRange, choice, type Node, nothing, sequence } from "./node.js";

/** The code points of a set in UTF-8; surrogates have no encoding. */
export function utf8Node(set: CodeSet): Node {
  const ranges = pairs(set).flatMap(([first, last]) => [
    ...utf8Ranges(first, Math.min(last, 0xd7ff)),
    ...utf8Ranges(Math.max(first, 0xe000), last),
  ]);
  return ranges.length === 0 ? nothing : choice(...ranges);
}

const continuation = byteRange(0x80, 0xbf);

/** Sequences of byte ranges for a range of code points without surrogates (R. Cox, "UTF-8 automata"). */
function utf8Ranges(first: number, last: number): Node[] {
  if (first > last) return [];
  for (const border of [0x7f, 0x7ff, 0xffff]) {
    if (first <= border && last > border)
      return [...utf8Ranges(first, border), ...utf8Ranges(border + 1, last)];
  }
  if (last <= 0x7f) return [byteRange(first, last)];
  const length = last <= 0x7ff ? 2 : last <= 0xffff ? 3 : 4;
  return tails(first, last, length - 1, lead(length));
}

function lead(length: number): number {
  return length === 2 ? 0xc0 : length === 3 ? 0xe0 : 0xf0;
}

/** `numTails` continuation bytes follow the byte that starts here, whose fixed bits are `marker`. */
function tails(first: number, last: number, numTails: number, marker: number): Node[] {
  if (numTails === 0) return [byteRange(marker | first, marker | last)];
  const shift = 6 * numTails;
  const mask = (1 << shift) - 1;
  const high = first >> shift;
  const highLast = last >> shift;
  const rest = (from: number, to: number): Node[] => tails(from & mask, to & mask, numTails - 1, 0x80);
  const starting = (byte: number, from: number, to: number): Node =>
    sequence(byteRange(marker | byte, marker | byte), choice(...rest(from, to)));
  if (high === highLast) return [starting(high, first, last)];
  const result: Node[] = [];
  let from = high;
  let to = highLast;
  if ((first & mask) !== 0) {
    result.push(starting(high, first, mask));
    from += 1;
  }
  if ((last & mask) !== mask) {
    result.push(starting(highLast, 0, last));
    to -= 1;
  }
  if (from <= to) {
    const any = Array.from({ length: numTails }, () => continuation);
    result.push(sequence(byteRange(marker | from, marker | to), ...any));
  }
  return result;
}
