import { OctavoError } from "@octavo/protocol/errors";
import type { KvCacheSpec, StateSpec } from "../backend.js";
import { kvDtypes, kvTokenBytes } from "../kv-bytes.js";
import { checkInteger, fail } from "./numbers.js";

/** Bytes of a cache with all layers, `invalid_request` or `out_of_memory`. */
export function checkKvCache(spec: KvCacheSpec): number {
  checkInteger("The number of layers", spec.layers.length, 1, 2 ** 16);
  checkInteger("numBlocks", spec.numBlocks, 1, 2 ** 31 - 1);
  checkInteger("blockSize", spec.blockSize, 1, 2 ** 16);
  for (const { numKvHeads, headDim } of spec.layers) {
    checkInteger("numKvHeads", numKvHeads, 1, 2 ** 16);
    checkInteger("headDim", headDim, 2, 1024);
    if (headDim % 2 !== 0) fail(`headDim must be even, not ${headDim}.`);
  }
  if (!kvDtypes.includes(spec.dtype)) {
    fail(`The KV cache knows the types ${kvDtypes.join(", ")}, not ${spec.dtype}.`);
  }
  const numSlots = spec.numBlocks * spec.blockSize;
  if (numSlots > 2 ** 31 - 1)
    fail(
      `${spec.numBlocks} blocks of ${spec.blockSize} are ${numSlots} slots; at most ${2 ** 31 - 1} can be addressed.`,
    );
  const bytes =
    numSlots * kvTokenBytes(spec.layers, spec.dtype) +
    (spec.states === undefined ? 0 : checkStates(spec.states));
  if (!Number.isSafeInteger(bytes))
    throw new OctavoError("out_of_memory", `A KV cache of ${bytes} bytes is more than any machine has.`);
  return bytes;
}

/** Bytes of all slots. */
function checkStates({ numSlots, maxDraftTokens, widths }: StateSpec): number {
  checkInteger("states.numSlots", numSlots, 1, 2 ** 31 - 1);
  checkInteger("states.maxDraftTokens", maxDraftTokens, 0, 2 ** 16);
  for (const width of widths) checkInteger("A width of states", width, 1, 2 ** 40);
  return 4 * numSlots * widths.reduce((sum, width) => sum + width, 0);
}
