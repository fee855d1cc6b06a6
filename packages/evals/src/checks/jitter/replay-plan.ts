import type { Neighbour, Target } from "../../targets/target.js";
import { fillerCase } from "../collecting/filler.js";
import type { ScheduledCase, SentCase } from "../collecting/open-loop.js";

/** A turn to rerun, to find the request that caused the gap. */
export interface ReplayPlan {
  /** Requests that ran beside the stream with the longest gap. */
  readonly beside: readonly ScheduledCase[];
  /** The same without the one that took most of the compute time; undefined where none took more than half. */
  readonly withoutOne: readonly ScheduledCase[] | undefined;
}

/** Longer prompts and answers of strangers are not stood in for. */
const mostTokens = 131_072;
/** Seed of the prompts that stand in for strangers, so that no two begin alike. */
const strangerSeed = 7919;

/**
 * Neighbours of a replayed stream, as the server knows them: its neighbours of this turn, and for strangers
 * prompts of the same length, which are the same work, at the same distance. What a stranger found cached is not computed
 * for it either.
 *
 * @param sent everything of the turn, with the answers
 * @param slow the stream with the longest gap
 * @param scheduled what was sent beside the streams, which is what is run again where the server does not tell
 */
export async function planReplay(
  target: Target,
  sent: readonly SentCase[],
  slow: SentCase,
  scheduled: readonly ScheduledCase[],
  signal: AbortSignal,
): Promise<ReplayPlan> {
  const id = slow.answer.serving?.request_id;
  const { tenant } = slow.scheduled.evalCase;
  const known = id === undefined ? undefined : await target.neighbours?.(id, tenant, signal);
  if (known === undefined) return { beside: scheduled, withoutOne: undefined };
  const own = new Map(
    sent.flatMap((one) => {
      const requestId = one.answer.serving?.request_id;
      return requestId === undefined ? [] : [[requestId, one.scheduled] as const];
    }),
  );
  const beside = known.flatMap((neighbour, index) => {
    const mine = own.get(neighbour.requestId);
    // the other streams are sent again anyway
    if (mine !== undefined && !isFiller(mine)) return [];
    return [{ neighbour, again: mine ?? standIn(neighbour, index, slow.scheduled.atMs) }];
  });
  const total = beside.reduce((sum, { neighbour }) => sum + neighbour.kernelMs, 0);
  const blamed = beside.find(({ neighbour }) => 2 * neighbour.kernelMs > total);
  const isOneOfMany = blamed !== undefined && beside.length > 1;
  return {
    beside: beside.map(({ again }) => again),
    withoutOne: isOneOfMany ? beside.flatMap((one) => (one === blamed ? [] : [one.again])) : undefined,
  };
}

export function isFiller({ evalCase }: ScheduledCase): boolean {
  return evalCase.tags.includes("filler");
}

function standIn(
  { promptTokens, cachedTokens, outputTokens, arrivalOffsetMs }: Neighbour,
  index: number,
  atMs: number,
): ScheduledCase {
  const prompt = Math.min(mostTokens, Math.max(1, promptTokens - cachedTokens));
  const output = Math.min(mostTokens, Math.max(1, outputTokens));
  return {
    evalCase: fillerCase(index, prompt, output, strangerSeed),
    atMs: Math.max(0, atMs + arrivalOffsetMs),
  };
}
