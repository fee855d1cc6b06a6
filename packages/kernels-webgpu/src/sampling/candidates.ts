import type { RowSampling } from "@octavo/kernels";
import { mostCandidates } from "../wgsl/candidates.js";
import { isGreedy, sampleRow, weightOf } from "./draw.js";
import type { TokenHistory } from "./sampler-state.js";

/** More are cut from the whole row: some candidates must be left to show that the border of top-k is theirs. */
const mostTopK = mostCandidates / 2;

/** Whether the most likely tokens decide what is sampled: nothing edits the row, and top-k leaves few. */
export function isOfCandidates(
  sampling: RowSampling,
  history: TokenHistory | undefined,
  vocabSize: number,
): boolean {
  const { topK, mask, suppressStops } = sampling;
  return (
    !isGreedy(sampling) &&
    topK > 0 &&
    topK <= Math.min(mostTopK, vocabSize - 1) &&
    mask === undefined &&
    (history === undefined || !history.edits(suppressStops === true))
  );
}

/**
 * The token that `sampleRow` draws from the whole row, bit by bit the same; undefined where candidates do not decide it, because tokens
 * that are none of them may weigh as much as the last that top-k leaves.
 */
export function sampleCandidates(
  words: Uint32Array,
  sampling: RowSampling,
  vocabSize: number,
): number | undefined {
  const count = words[0] ?? 0;
  const { topK } = sampling;
  if (count > mostCandidates || count < Math.min(topK + 1, vocabSize)) return undefined;
  const floats = new Float32Array(words.buffer, words.byteOffset, words.length);
  const candidates = Array.from({ length: count }, (_, at) => ({
    id: words[4 + 2 * at] ?? 0,
    logit: floats[5 + 2 * at] ?? 0,
  })).toSorted((a, b) => a.id - b.id);
  const logits = Float32Array.from(candidates, ({ logit }) => logit);
  if (count < vocabSize) {
    const ordered = logits.toSorted((a, b) => b - a);
    const weight = (logit: number): number => weightOf(logit, ordered[0] ?? 0, sampling);
    const outside = weight(floats[1] ?? 0);
    if (outside > 0 && !(weight(ordered[topK - 1] ?? 0) > outside)) return undefined;
  }
  return candidates[sampleRow(logits, sampling, undefined, undefined).token]?.id;
}
