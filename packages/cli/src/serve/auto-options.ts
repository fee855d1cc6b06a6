import type { LoadOptions, ModelDescription } from "@octavo/engine";
import { OctavoError } from "@octavo/protocol/errors";
import { formatBinaryBytes } from "@octavo/protocol/options";
import { memoryPlan } from "../models/model-fit.js";

type Sizes = Pick<LoadOptions, "maxModelLen" | "kvCacheMemoryBytes" | "memoryUtilization">;

/** Share of the free memory that is planned with; the rest is for requests and for what else runs. */
const plannedShare = 0.9;

/** Peak memory while weights are packed, relative to their bytes. */
const packingPeak = 1.3;

const tokensOfConversation = 4096;
const mostSequences = 256;

/**
 * `--auto`: the longest context and the KV cache for as many conversations as fit beside the weights; what is given stays. The line says
 * the flags and why.
 * @throws OctavoError `invalid_option` where not even a short conversation fits
 */
export function autoOptions(
  model: string,
  description: ModelDescription,
  freeBytes: number,
  given: Sizes,
): { readonly options: Sizes; readonly line: string } {
  const bytesOf = (context: number): number =>
    memoryPlan(model, description, freeBytes, context).kvBytesPerSequence.bf16;
  const { shape, machines } = memoryPlan(model, description, freeBytes);
  const weightBytes = machines[0]?.formats[0]?.weightBytes ?? 0;
  const left = freeBytes * plannedShare - weightBytes * packingPeak;
  const room = given.kvCacheMemoryBytes ?? Math.min(left, left * (given.memoryUtilization ?? 1));
  const longest = given.maxModelLen ?? shape.maxPositions ?? tokensOfConversation;
  const shortest = Math.min(longest, given.maxModelLen ?? 256);
  if (left <= 0 || bytesOf(shortest) > room)
    throw new OctavoError(
      "invalid_option",
      `--auto: ${model} takes ${formatBinaryBytes(weightBytes)} of weights and ${formatBinaryBytes(bytesOf(shortest))} for ${shortest} tokens, of ${formatBinaryBytes(freeBytes)} that are free; see octavo plan for smaller formats`,
      { param: "auto" },
    );
  const maxModelLen = longestWithin(shortest, longest, (context) => bytesOf(context) <= room);
  const conversation = bytesOf(Math.min(maxModelLen, tokensOfConversation));
  const wanted = Math.max(bytesOf(maxModelLen), conversation * mostSequences);
  const kvCacheMemoryBytes = Math.floor(given.kvCacheMemoryBytes ?? Math.min(room, wanted));
  const sequences = Math.min(mostSequences, Math.floor(kvCacheMemoryBytes / conversation));
  const flags = [
    ...(given.maxModelLen === undefined ? [`--max-model-len ${maxModelLen}`] : []),
    ...(given.kvCacheMemoryBytes === undefined
      ? [`--kv-cache-memory ${formatBinaryBytes(kvCacheMemoryBytes).replace(" ", "")}`]
      : []),
  ];
  return {
    options: { maxModelLen, kvCacheMemoryBytes, memoryUtilization: undefined },
    line: `--auto: ${flags.join(" ") || "nothing is left to choose"} (weights ${formatBinaryBytes(weightBytes)}, free ${formatBinaryBytes(freeBytes)}; room for ${sequences} x ${Math.min(maxModelLen, tokensOfConversation)} tokens)`,
  };
}

/** The largest number that fits, in steps of 256 above the first; the first is known to. */
function longestWithin(first: number, last: number, fits: (value: number) => boolean): number {
  if (fits(last)) return last;
  let low = 0;
  let high = Math.ceil((last - first) / 256);
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (fits(first + middle * 256)) low = middle;
    else high = middle;
  }
  return first + low * 256;
}
