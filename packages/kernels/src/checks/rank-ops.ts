import { OctavoError } from "@octavo/protocol/errors";
import type { Op, ProgramSpec } from "../ops.js";
import type { OpChecker } from "./gate-ops.js";

export function checkExchange({ on, from }: Extract<Op, { op: "exchange" }>, check: OpChecker): void {
  // All but the first rank have nothing of theirs there.
  if (from === "first") check.write("on", on);
  else if (from === "parts") check.read("on", on);
  else check.fail(`gets columns from ${String(from)}`);
}

/** Refuses a program that is only a part, for one rank of several. */
export function checkAlone({ ops, head }: ProgramSpec): void {
  const isPart = ops.some((op) => op.op === "exchange" || (op.op === "experts" && op.isSplit === true));
  if (!isPart && head?.allRows === undefined) return;
  throw new OctavoError("internal_error", "Cannot compile: the program is a part, for one rank of several.");
}
