import { OctavoError } from "@octavo/protocol/errors";

/** A peer's greedy continuation of a prompt, with its most likely tokens at each step, best first; none where it does not tell. */
export interface PeerAnswer {
  readonly prompt: readonly number[];
  readonly greedy: readonly number[];
  readonly top: readonly (readonly (readonly [token: number, logprob: number])[])[];
}

/**
 * Engines round differently, so a choice also counts as the peer's where the peer puts it within half a nat of its best
 * (vllm.cpp's rule).
 */
export const NEAR_TIE_NATS = 0.5;

/**
 * Holds greedy tokens against a peer's: they may part only at a near tie. `choices` are Octavo's on the peer's own prefix at
 * every step; each must be the peer's or nearly tied with it. Throws `engine_failed` otherwise.
 */
export function checkAnswer(answer: PeerAnswer, greedy: readonly number[], choices: readonly number[]): void {
  const parting = answer.greedy.findIndex((token, step) => token !== greedy[step]);
  if (parting >= 0) checkNearTie(answer, parting, greedy[parting]);
  for (const step of answer.greedy.keys()) checkNearTie(answer, step, choices[step]);
}

/**
 * The same for a peer that tells no probabilities: `gaps` are, by Octavo's, how many nats each of the peer's tokens lies below the
 * best one. Throws `engine_failed` where one is no near tie.
 */
export function checkUnscoredAnswer(greedy: readonly number[], gaps: readonly number[]): void {
  if (greedy.length === 0)
    throw new OctavoError("engine_failed", "the peer answered nothing; nothing is timed");
  const step = gaps.findIndex((gap) => !(gap <= NEAR_TIE_NATS));
  if (step < 0) return;
  throw new OctavoError(
    "engine_failed",
    `step ${step}: the peer chose ${greedy[step]}, which Octavo puts ${gaps[step]?.toFixed(2)} nats below its best; nothing is timed`,
  );
}

function checkNearTie({ top }: PeerAnswer, step: number, token: number | undefined): void {
  const best = top[step] ?? [];
  if (best.length === 0) return;
  const [bestToken, bestLogprob] = best[0] ?? [undefined, 0];
  const gap = bestLogprob - (best.find(([candidate]) => candidate === token)?.[1] ?? -Infinity);
  if (gap <= NEAR_TIE_NATS) return;
  throw new OctavoError(
    "engine_failed",
    `step ${step}: Octavo chose ${token}, the peer ${bestToken}, which it puts ${gap.toFixed(2)} nats above; nothing is timed`,
  );
}
