/** What one of `count` ranks has of `total` columns or rows; `native/program/rank_group.h` divides in the same way. */
export function rankPart(total: number, count: number, rank: number): { first: number; width: number } {
  const first = Math.floor((total * rank) / count);
  return { first, width: Math.floor((total * (rank + 1)) / count) - first };
}
