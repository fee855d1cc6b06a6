import { OctavoError } from "@octavo/protocol";
import { requireCount } from "../check.js";

/** Cases answered by a baseline and a candidate, by who was right. */
export interface PairedTable {
  readonly both: number;
  /** Right before, wrong now. */
  readonly lost: number;
  /** Wrong before, right now. */
  readonly gained: number;
  readonly neither: number;
}

/** Throws `invalid_option` on anything but counts, or without a pair; returns how many pairs there are. */
export function requirePairs({ both, lost, gained, neither }: PairedTable): number {
  requireCount("both", both);
  requireCount("lost", lost);
  requireCount("gained", gained);
  requireCount("neither", neither);
  const pairs = both + lost + gained + neither;
  if (pairs === 0) {
    throw new OctavoError("invalid_option", "The table has no pairs; at least 1 is needed.", {
      param: "both",
    });
  }
  return pairs;
}
