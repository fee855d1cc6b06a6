import type { RowSampling } from "@octavo/kernels";
import { Sequence, type SequenceGroup } from "../../scheduler/sequence.js";
import type { Drafter, DraftRequest } from "../../speculation/drafter.js";

const greedy: RowSampling = { temperature: 0, topP: 1, topK: 0, minP: 0, seed: 1n, index: 0 };

/** A sequence of its own, outside any scheduler. */
export function singleSequence(
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

/** What a drafter proposes for a sequence, whose draft is emptied again, and its confidence. */
export async function draftOf(
  drafter: Drafter,
  sequence: Sequence,
  maxTokens: number,
  sampling: RowSampling = greedy,
): Promise<{ readonly tokens: number[]; readonly confidence: number }> {
  const request: DraftRequest = { sequence, sampling, maxTokens, confidence: 0 };
  await drafter.draft([request]);
  const tokens = Array.from(sequence.draft.slice());
  sequence.draft.truncate(0);
  return { tokens, confidence: request.confidence };
}
