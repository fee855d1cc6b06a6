import type { Activation, BufferRef, Op } from "../backend.js";
import type { Span } from "./span.js";

/** In the order of the C++ enumeration. */
export const activations: readonly string[] = [
  "silu",
  "gelu",
  "gelu_tanh",
  "clamped_swiglu",
  "sigmoid",
  "identity",
  "relu_squared",
  "tanh",
  "relu",
] satisfies Activation[];
/** All that take one value: `clamped_swiglu` takes two. */
export const plainActivations = activations.filter((activation) => activation !== "clamped_swiglu");

/** How a check reads and writes a program's buffers, and how it fails. */
export interface OpChecker {
  read(name: string, ref: BufferRef): Span;
  write(name: string, ref: BufferRef): Span;
  /** Refuses spans that overlap. */
  apart(leftName: string, left: Span, rightName: string, right: Span): void;
  equal(leftName: string, left: number, rightName: string, right: number): void;
  positive(name: string, value: number): void;
  fail(problem: string): never;
}

export function checkGate(op: Extract<Op, { op: "gate" }>, check: OpChecker): void {
  if (!plainActivations.includes(op.activation)) check.fail(`cannot gate by ${op.activation}`);
  const { width } = check.read("in", op.in);
  check.equal("the width of in", width, "the width of on", check.read("on", op.on).width);
}

export function checkHeadLinear(op: Extract<Op, { op: "head_linear" }>, check: OpChecker): void {
  const { weights, passed = 0 } = op;
  const { length } = weights;
  check.positive("the number of weights", length);
  if (!Number.isInteger(passed) || passed < 0) check.fail(`passes ${passed} columns of a head on`);
  const { rows = 0, cols = 0 } = weights[0] ?? {};
  for (const weight of weights) {
    check.equal("the number of a weight's rows", weight.rows, "those of the first", rows);
    check.equal("the number of a weight's columns", weight.cols, "those of the first", cols);
  }
  const input = check.read("in", op.in);
  check.equal("the width of in", input.width, "the heads' columns", length * (cols + passed));
  const out = check.write("out", op.out);
  check.equal("the width of out", out.width, "the heads' columns", length * (rows + passed));
  check.apart("in", input, "out", out);
}

export function checkSplit(op: Extract<Op, { op: "split" }>, check: OpChecker): void {
  const input = check.read("in", op.in);
  const { width } = input;
  check.positive("run", op.run);
  if (width % (2 * op.run) !== 0) check.fail(`splits ${width} columns into runs of ${op.run} in turn`);
  for (const name of ["first", "second"] as const) {
    const out = check.write(name, op[name]);
    check.equal(`twice the width of ${name}`, 2 * out.width, "the width of in", width);
    check.apart("in", input, name, out);
  }
}
