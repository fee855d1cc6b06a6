import type { LoggedStep } from "./step-log.js";
import type { RequestTimeline } from "./request-timeline.js";

/** A request as it would have to be sent again: when, how long, how much of it was cached. Times in ms. */
export interface RecordedRequest {
  readonly requestId: string;
  readonly tenant: string;
  readonly isOver: boolean;
  /** From the arrival of the request that was asked about; below 0 when it was there before. */
  readonly arrivalOffsetMs: number;
  /** From its own arrival: to being admitted, to its first token, to its end; undefined for what has not come. */
  readonly queueMs: number | undefined;
  readonly timeToFirstTokenMs: number | undefined;
  readonly e2eMs: number | undefined;
  readonly promptTokens: number;
  /** Of them, what it found in the prefix cache. */
  readonly cachedTokens: number;
  /** Of each of its sequences; 0 of an embedding. */
  readonly outputTokens: readonly number[];
  /** What it was computed while the request that was asked about was there: tokens, and its part of the steps' compute time. */
  readonly tokensMeanwhile: number;
  readonly kernelMsMeanwhile: number;
}

/** A request and who was there at some time between its arrival and its end. */
export interface Neighbours {
  readonly request: RecordedRequest;
  /** By arrival; at most 512, those that were computed most meanwhile. */
  readonly neighbours: readonly RecordedRequest[];
  /** Neighbours beyond those. */
  readonly numOmitted: number;
}

/** What is known of a request that is there or over. */
export interface KnownRequest {
  readonly requestId: string;
  readonly tenant: string;
  readonly isOver: boolean;
  readonly timeline: RequestTimeline;
  readonly promptTokens: number;
  readonly cachedTokens: number;
  readonly outputTokens: readonly number[];
}

const maxNeighbours = 512;

/** `steps` are those that were under way from `own`'s arrival to its end. */
export function neighboursOf(
  own: KnownRequest,
  all: Iterable<KnownRequest>,
  steps: Iterable<LoggedStep>,
): Neighbours {
  const shares = new Map<number, { tokens: number; ms: number }>();
  for (const step of steps) {
    for (const { order, tokens, ms } of step.shares) {
      const share = shares.get(order) ?? { tokens: 0, ms: 0 };
      share.tokens += tokens;
      share.ms += ms;
      shares.set(order, share);
    }
  }
  const { arrivalMs, endMs = Number.POSITIVE_INFINITY } = own.timeline;
  const recorded = ({ timeline, ...known }: KnownRequest): RecordedRequest => {
    const share = shares.get(timeline.order);
    const since = (ms: number | undefined): number | undefined =>
      ms === undefined ? undefined : ms - timeline.arrivalMs;
    return {
      ...known,
      arrivalOffsetMs: timeline.arrivalMs - arrivalMs,
      queueMs: since(timeline.admittedMs),
      timeToFirstTokenMs: since(timeline.firstTokenMs),
      e2eMs: since(timeline.endMs),
      tokensMeanwhile: share?.tokens ?? 0,
      kernelMsMeanwhile: share?.ms ?? 0,
    };
  };
  const found: RecordedRequest[] = [];
  for (const other of all) {
    const { timeline } = other;
    if (timeline === own.timeline || timeline.arrivalMs >= endMs) continue;
    if (timeline.endMs !== undefined && timeline.endMs <= arrivalMs) continue;
    found.push(recorded(other));
  }
  const chosen = found
    .toSorted((a, b) => b.kernelMsMeanwhile - a.kernelMsMeanwhile)
    .slice(0, maxNeighbours)
    .toSorted((a, b) => a.arrivalOffsetMs - b.arrivalOffsetMs);
  return { request: recorded(own), neighbours: chosen, numOmitted: found.length - chosen.length };
}
