import type { RowSampling } from "@octavo/kernels";
import { Sequence, type SequenceGroup } from "../../scheduler/sequence.js";
import type { Drafter, Guess } from "../../speculation/drafter.js";

const greedy: RowSampling = { temperature: 0, topP: 1, topK: 0, minP: 0, seed: 1n, index: 0 };

/** A sequence on its own, as far along as its tokens say. */
export function lonelySequence(
  prompt: readonly number[],
  output: readonly number[] = [],
  group: Partial<SequenceGroup> = {},
): Sequence {
  const whole: SequenceGroup = {
    requestId: "alone",
    order: 0,
    priority: 0,
    cacheSalt: undefined,
    sequences: [],
    ...group,
  };
  const sequence = new Sequence(whole, 0, Int32Array.from(prompt));
  for (const token of output) sequence.tokens.push(token);
  return sequence;
}

/** What a drafter guesses of a sequence, which is left as it was, and how sure it is. */
export async function guessOf(
  drafter: Drafter,
  sequence: Sequence,
  most: number,
  sampling: RowSampling = greedy,
): Promise<{ readonly tokens: number[]; readonly confidence: number }> {
  const guess: Guess = { sequence, sampling, most, confidence: 0 };
  await drafter.guess([guess]);
  const tokens = Array.from(sequence.draft.slice());
  sequence.draft.truncate(0);
  return { tokens, confidence: guess.confidence };
}
