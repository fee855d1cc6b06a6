import type { BufferRef, Op, RecurrentOp } from "../backend.js";
import type { OpChecker } from "./gate-ops.js";
import type { Span } from "./span.js";

/** What the program's ops keep of a sequence, in floats, and what each draft token adds. */
export interface StateNeed {
  readonly base: number;
  readonly perDraft: number;
}

const mostTaps = 8;
/** Sizes of a slot stay exact. */
const mostHeadElements = 2 ** 24;

/** `numBefore`: recurrent ops that stand before this one. */
export function checkRecurrentOp(op: RecurrentOp, numBefore: number, check: OpChecker): void {
  check.equal("its state", op.state, "the recurrent ops before it", numBefore);
  if (op.op === "convolution") return checkConvolution(op, check);
  const { numHeads, numKeyHeads, keyDim, valueDim } = op;
  for (const [name, value] of Object.entries({ numHeads, numKeyHeads, keyDim, valueDim }))
    check.positive(name, value);
  if (numHeads % numKeyHeads !== 0)
    check.fail(`has ${numHeads} heads over ${numKeyHeads} key heads, which must divide them`);
  if (keyDim % 4 !== 0) check.fail(`has keyDim ${keyDim}; it must be a multiple of 4`);
  if (keyDim * valueDim > mostHeadElements) check.fail(`has heads of ${keyDim} by ${valueDim}`);
  if (op.rateForm !== "log" && op.rateForm !== "negative")
    check.fail(`knows no rateForm ${String(op.rateForm)}`);
  check.equal("decayRate", op.decayRate.length, "the heads", numHeads);
  check.equal("stepBias", op.stepBias.length, "the heads", numHeads);
  const wide = (name: string, ref: BufferRef, width: number, what: string): Span => {
    const span = check.read(name, ref);
    check.equal(`the width of ${name}`, span.width, what, width);
    return span;
  };
  const keys = numKeyHeads * keyDim;
  const values = numHeads * valueDim;
  const isDelta = op.op === "gated_delta_rule";
  const inputs = isDelta
    ? ([
        ["q", wide("q", op.q, keys, "the key heads' columns")],
        ["k", wide("k", op.k, keys, "the key heads' columns")],
        ["v", wide("v", op.v, values, "the heads' columns")],
        ["decay", wide("decay", op.decay, numHeads, "the heads")],
        ["strength", wide("strength", op.strength, numHeads, "the heads")],
      ] as const)
    : ([
        ["c", wide("c", op.c, keys, "the key heads' columns")],
        ["b", wide("b", op.b, keys, "the key heads' columns")],
        ["x", wide("x", op.x, values, "the heads' columns")],
        ["step", wide("step", op.step, numHeads, "the heads")],
      ] as const);
  if (isDelta) {
    if (op.keyHeads !== "grouped" && op.keyHeads !== "tiled")
      check.fail(`knows no keyHeads ${String(op.keyHeads)}`);
  } else {
    check.equal("skip", op.skip.length, "the heads", numHeads);
    const { leastStep = 0, mostStep = Infinity } = op;
    if (!(leastStep >= 0 && leastStep < mostStep))
      check.fail(`bounds its step by ${leastStep} and ${mostStep}`);
  }
  const out = check.write("out", op.out);
  check.equal("the width of out", out.width, "the heads' columns", values);
  for (const [name, input] of inputs) check.apart(name, input, "out", out);
}

function checkConvolution(op: Extract<Op, { op: "convolution" }>, check: OpChecker): void {
  const input = check.read("in", op.in);
  const taps = op.weight.length / input.width;
  if (!Number.isInteger(taps) || taps < 2 || taps > mostTaps) {
    check.fail(
      `has ${op.weight.length} weights for ${input.width} channels; each needs from 2 to ${mostTaps}`,
    );
  }
  if (op.activation !== undefined && op.activation !== "silu")
    check.fail(`knows no activation ${String(op.activation)}`);
  if (op.bias !== undefined) check.equal("the bias", op.bias.length, "the channels", input.width);
  const out = check.write("out", op.out);
  check.equal("the width of out", out.width, "the channels", input.width);
  check.apart("in", input, "out", out);
}
