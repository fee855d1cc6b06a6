import { OctavoError } from "@octavo/protocol/errors";
import type { Op, ProgramSpec } from "../ops.js";
import type { StepPlan } from "../step.js";
import type { OpChecker } from "./gate-ops.js";
import { fail } from "./numbers.js";
import { spanOf } from "./span.js";

/** What ranks and stages give each other. */
export function checkHandOver(
  op: Extract<Op, { op: "exchange" | "receive" | "send" }>,
  check: OpChecker,
): void {
  if (op.op === "receive") return void check.write("out", op.out);
  if (op.op === "send") return void check.read("in", op.in);
  const { on, from } = op;
  // All but the first rank have nothing of theirs there.
  if (from === "first") check.write("on", on);
  else if (from === "parts") check.read("on", on);
  else check.fail(`gets columns from ${String(from)}`);
}

/** Refuses a step without the rows that its program receives. */
export function checkReceived({ numTokens, received }: StepPlan, { ops, buffers }: ProgramSpec): void {
  const width = ops.reduce((sum, op) => sum + (op.op === "receive" ? spanOf(op.out, buffers).width : 0), 0);
  if ((received?.length ?? 0) === numTokens * width) return;
  fail(`received has ${received?.length ?? 0} elements; the step needs ${numTokens} rows of ${width}.`);
}

/** Refuses a program that is only a part, for one rank of several. */
export function checkAlone({ ops, head }: ProgramSpec): void {
  const isPart = ops.some((op) => op.op === "exchange" || (op.op === "experts" && op.isSplit === true));
  if (!isPart && head?.allRows === undefined) return;
  throw new OctavoError("internal_error", "Cannot compile: the program is a part, for one rank of several.");
}
