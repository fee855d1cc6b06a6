import { OctavoError } from "@octavo/protocol/errors";
import type { PairTemplate } from "./specification.js";
import type { TokenPair } from "./tokenizer.js";

export function joinPair(
  template: PairTemplate | undefined,
  first: Int32Array,
  second: Int32Array,
  maxTokens = Number.POSITIVE_INFINITY,
): TokenPair {
  if (template === undefined)
    throw new OctavoError(
      "artifact_unsupported",
      "This model's tokenizer does not say how two texts are joined.",
    );
  const { before, between, after, hasTypes } = template;
  const [a, b] = fittingLengths(
    first.length,
    second.length,
    maxTokens - before.length - between.length - after.length,
  );
  const head = [...before, ...first.subarray(0, a), ...between];
  return {
    tokens: Int32Array.from([...head, ...second.subarray(0, b), ...after]),
    secondFrom: hasTypes ? head.length : undefined,
  };
}

/** Hugging Face's strategy `longest_first`: the longer text gives way until both are as long, then both do. */
function fittingLengths(first: number, second: number, room: number): readonly [number, number] {
  if (first + second <= room) return [first, second];
  const most = Math.max(0, room);
  let shorter = Math.min(first, second);
  let longer = shorter > most ? shorter : Math.max(shorter, most - shorter);
  if (shorter + longer > most) {
    shorter = Math.floor(most / 2);
    longer = shorter + (most % 2);
  }
  return first > second ? [longer, shorter] : [shorter, longer];
}
