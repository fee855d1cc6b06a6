import type { LoggedStep } from "./step-log.js";
import type { RequestTimeline } from "./request-timeline.js";

/** What is needed to replay a request: arrival, lengths, cached tokens. Times in ms. */
export interface RecordedRequest {
  readonly requestId: string;
  readonly tenant: string;
  readonly isOver: boolean;
  /** From the arrival of the request in question; negative if it arrived earlier. */
  readonly arrivalOffsetMs: number;
  /** From its own arrival to admission, first token and end; undefined for what has not happened. */
  readonly queueMs: number | undefined;
  readonly timeToFirstTokenMs: number | undefined;
  readonly e2eMs: number | undefined;
  readonly promptTokens: number;
  /** Prompt tokens found in the prefix cache. */
  readonly cachedTokens: number;
  /** By sequence; 0 for an embedding. */
  readonly outputTokens: readonly number[];
  /** Its tokens and its share of compute time during the lifetime of the request in question. */
  readonly tokensMeanwhile: number;
  readonly kernelMsMeanwhile: number;
}

/** A request and the requests that were in the engine at some time between its arrival and its end. */
export interface Neighbours {
  readonly request: RecordedRequest;
  /** By arrival; at most 512, those with the most compute time meanwhile. */
  readonly neighbours: readonly RecordedRequest[];
  /** Further neighbours that are left out. */
  readonly numOmitted: number;
}

/** What is known of a running or ended request. */
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

/** `steps` are those in flight between `own`'s arrival and its end. */
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
