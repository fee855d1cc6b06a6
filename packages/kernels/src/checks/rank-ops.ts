import { OctavoError } from "@octavo/protocol/errors";
import type { ProgramSpec } from "../ops.js";

/** Refuses a program that is only a part, for one rank of several. */
export function checkAlone({ ops, head }: ProgramSpec): void {
  const isPart = ops.some((op) => op.op === "exchange" || (op.op === "experts" && op.isSplit === true));
  if (!isPart && head?.allRows === undefined) return;
  throw new OctavoError("internal_error", "Cannot compile: the program is a part, for one rank of several.");
}
