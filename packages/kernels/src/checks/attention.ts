import type { KvLayerShape, Op } from "../backend.js";
import { isSameKvLayer, kvLayerOf } from "../kv-bytes.js";
import type { OpChecker } from "./gate-ops.js";

type AttentionOp = Extract<Op, { op: "attention" }>;

/** Adds the op's layer of the cache to `kvLayers`, where it must not differ from what another op has there. */
export function checkAttention(
  op: AttentionOp,
  kvLayers: (KvLayerShape | undefined)[],
  check: OpChecker,
): void {
  const { numHeads, numKvHeads, headDim, layer } = op;
  check.positive("numHeads", numHeads);
  check.positive("numKvHeads", numKvHeads);
  if (numHeads % numKvHeads !== 0)
    check.fail(`has ${numHeads} heads over ${numKvHeads} kv heads, which must divide them`);
  check.positive("headDim", headDim);
  if (headDim % 2 !== 0 || headDim > 1024) check.fail(`has headDim ${headDim}; it must be even, up to 1024`);
  if (!Number.isInteger(layer) || layer < 0 || layer >= 2 ** 16) check.fail(`has layer ${layer}`);
  if (!Number.isFinite(op.scale)) check.fail(`has scale ${op.scale}`);
  if (op.slidingWindow !== undefined) check.positive("slidingWindow", op.slidingWindow);
  if (op.chunk !== undefined) {
    check.positive("chunk", op.chunk);
    if (op.slidingWindow !== undefined || op.lookAhead !== undefined)
      check.fail("has a chunk beside a window or tokens ahead");
  }
  if (op.lookAhead !== undefined && !(Number.isSafeInteger(op.lookAhead) && op.lookAhead >= 0))
    check.fail(`looks ${op.lookAhead} tokens ahead`);
  if (op.softCap !== undefined && !(op.softCap > 0 && Number.isFinite(op.softCap)))
    check.fail(`needs softCap to be positive and finite, not ${op.softCap}`);
  if (op.sinks !== undefined) check.equal("the number of sinks", op.sinks.length, "the heads", numHeads);
  check.equal("the width of q", check.read("q", op.q).width, "the heads' columns", numHeads * headDim);
  const kvWidth = numKvHeads * headDim;
  if (op.k === undefined && (op.v ?? op.valueDim) !== undefined) check.fail("has values without keys");
  for (const [name, ref] of [
    ["k", op.k],
    ["v", op.v],
  ] as const) {
    if (ref === undefined) continue;
    check.equal(`the width of ${name}`, check.read(name, ref).width, "the kv heads' columns", kvWidth);
  }
  const out = check.write("out", op.out);
  check.equal("the width of out", out.width, "the heads' columns", numHeads * valueDimOf(op, check));
  const [known, own] = [kvLayers[layer], kvLayerOf(op)];
  if (known !== undefined && !isSameKvLayer(known, own))
    check.fail(`differs from another op with layer ${layer} of the KV cache in kv heads or head size`);
  if (known === undefined && op.k === undefined)
    check.fail(`reads layer ${layer} of the KV cache, which no op before it writes`);
  kvLayers[layer] = own;
}

/** Columns that an attention op gives for each head. */
function valueDimOf({ k, v, valueDim, headDim }: AttentionOp, check: OpChecker): number {
  if (k === undefined) return headDim;
  if (v !== undefined) {
    if (valueDim !== undefined) check.fail("has values of their own, which are as wide as keys");
    return headDim;
  }
  if (valueDim === undefined || !Number.isInteger(valueDim) || valueDim < 1 || valueDim > headDim)
    check.fail(`takes ${valueDim} of ${headDim} columns of a key as its value`);
  return valueDim;
}
