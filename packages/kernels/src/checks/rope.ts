import type { Op } from "../backend.js";
import type { OpChecker } from "./gate-ops.js";

/** Refuses a rotation of other pairs than its heads have, or by what is no number. */
export function checkRope(op: Extract<Op, { op: "rope" }>, check: OpChecker): void {
  const { width } = check.read("on", op.on);
  check.positive("headDim", op.headDim);
  if (width % op.headDim !== 0)
    check.fail(`has heads of ${op.headDim}, which do not divide its ${width} columns`);
  const pairs = op.rope.inverseFrequencies.length;
  if (pairs === 0 || 2 * pairs > op.headDim) check.fail(`rotates ${pairs} pairs of heads of ${op.headDim}`);
  if (!op.rope.inverseFrequencies.every(Number.isFinite)) check.fail("has a frequency that is not finite");
  if (!Number.isFinite(op.rope.attentionFactor))
    check.fail(`has the attention factor ${op.rope.attentionFactor}`);
  const { growth, axes } = op.rope;
  if (axes !== undefined && (axes.length !== pairs || axes.some((axis) => axis > 2)))
    check.fail(`has ${axes.length} axes of ${pairs} pairs, or one above 2`);
  if (growth !== undefined) {
    check.positive("growth.every", growth.every);
    if (!(Number.isSafeInteger(growth.offset ?? 0) && (growth.offset ?? 0) >= 0))
      check.fail(`has the growth's offset ${growth.offset}`);
    if (!(growth.beta >= 0 && Number.isFinite(growth.beta))) check.fail(`has the growth ${growth.beta}`);
  }
  if (op.rope.layout !== "neox" && op.rope.layout !== "interleaved") {
    check.fail(`knows no layout ${String(op.rope.layout)}`);
  }
}
