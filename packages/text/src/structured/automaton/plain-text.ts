import { byteRange, type ByteSet } from "../node.js";

/**
 * Plain characters: what a JSON string holds unescaped, in UTF-8 (Unicode 15, table 3-7). Most tokens of a vocabulary
 * are made of nothing else, and most states either take all of them or few, so masks treat them together.
 */
export const numPlainStates = 8;

const ranges: readonly (readonly [state: number, first: number, last: number, next: number])[] = [
  [0, 0x20, 0x21, 0],
  [0, 0x23, 0x5b, 0],
  [0, 0x5d, 0x7e, 0],
  [0, 0xc2, 0xdf, 1],
  [0, 0xe0, 0xe0, 2],
  [0, 0xe1, 0xec, 3],
  [0, 0xed, 0xed, 4],
  [0, 0xee, 0xef, 3],
  [0, 0xf0, 0xf0, 5],
  [0, 0xf1, 0xf3, 6],
  [0, 0xf4, 0xf4, 7],
  [1, 0x80, 0xbf, 0],
  [2, 0xa0, 0xbf, 1],
  [3, 0x80, 0xbf, 1],
  [4, 0x80, 0x9f, 1],
  [5, 0x90, 0xbf, 3],
  [6, 0x80, 0xbf, 3],
  [7, 0x80, 0x8f, 3],
];

/** Byte ranges that lead from each state; state 0 is between characters. */
export const plainMoves: readonly (readonly { first: number; last: number; next: number }[])[] = Array.from(
  { length: numPlainStates },
  (_, state) =>
    ranges.filter(([from]) => from === state).map(([, first, last, next]) => ({ first, last, next })),
);

export const plainByteSets: readonly ByteSet[] = ranges.flatMap(([, first, last]) => {
  const node = byteRange(first, last);
  return node.op === "bytes" ? [node.set] : [];
});

/** Characters of a text that is plain throughout, undefined for any other. */
export function plainLength(bytes: Uint8Array): number | undefined {
  let state = 0;
  let length = 0;
  for (const byte of bytes) {
    const move = plainMoves[state]!.find(({ first, last }) => byte >= first && byte <= last);
    if (move === undefined) return undefined;
    state = move.next;
    if (state === 0) length += 1;
  }
  return state === 0 && length > 0 ? length : undefined;
}
