import type { Engine, FinishedRequest, RequestEvidence, ServingRecord } from "@octavo/engine";
import type { ServingFacts, TokenUsage } from "@octavo/tracing";
import { totalUsage } from "./usage.js";

export interface EngineIdentity {
  readonly engine: Engine;
  readonly engineVersion: string;
  readonly quantization: string | undefined;
  readonly replicaId: string | undefined;
}

/** Shorter times are not explained. */
export const slowFirstTokenMs = 50;
export const slowGapMs = 20;

/** Tokens of all engine requests of one HTTP request. */
export function requestUsage(finished: readonly FinishedRequest[]): TokenUsage {
  if (finished.length === 0) return {};
  const { promptTokens, completionTokens, cachedTokens } = totalUsage(finished.map(({ usage }) => usage));
  return {
    inputTokens: promptTokens,
    outputTokens: completionTokens,
    cacheReadInputTokens: cachedTokens,
  };
}

export function slowestOf(finished: readonly FinishedRequest[]): FinishedRequest | undefined {
  return finished.reduce<FinishedRequest | undefined>(
    (worst, request) => (worst === undefined || request.record.e2eMs > worst.record.e2eMs ? request : worst),
    undefined,
  );
}

/**
 * How the engine served a request. With several engine requests, times are those of the slowest; compute time and draft tokens are
 * totals.
 */
export function servingFacts(
  finished: readonly FinishedRequest[],
  identity: EngineIdentity,
  exchange?: { readonly requestId: string; readonly computeMs: number },
): ServingFacts {
  const { engine, engineVersion, quantization, replicaId } = identity;
  const slowest = slowestOf(finished);
  const record = slowest?.record;
  const evidence =
    slowest !== undefined && isWorthExplaining(slowest.record)
      ? engine.evidence.request(slowest.requestId)
      : undefined;
  return {
    requestId: exchange?.requestId,
    engineVersion,
    quantization,
    replicaId,
    queueDepth: record?.queueDepthAtArrival,
    queueMs: record?.queueMs,
    timeToFirstTokenMs: record?.timeToFirstTokenMs,
    prefillMs: record?.prefillMs,
    decodeMs: record?.decodeMs,
    kernelMs: record === undefined ? undefined : exchange?.computeMs,
    readerLagMs: evidence?.record.readerLagMs ?? record?.readerLagMs,
    gaps: record?.gaps,
    preemptions: record?.preemptions,
    recomputedTokens: record?.recomputedTokens,
    blocksEvicted: record?.blocksEvicted,
    evictedPrefixTokens: record?.evictedPrefixTokens,
    ...draftsOf(finished),
    cacheHitRatio: record?.cacheHitRatio,
    batchSize: record?.batchSize,
    prefillTokensInBatch: record?.sharedPrefillTokens,
    firstTokenCause: evidence?.firstToken?.cause,
    slowestGap: slowestGap(evidence),
  };
}

function draftsOf(
  finished: readonly FinishedRequest[],
): Pick<ServingFacts, "draftTokens" | "acceptedDraftTokens"> {
  if (finished.length === 0) return { draftTokens: undefined, acceptedDraftTokens: undefined };
  const sum = (of: (record: ServingRecord) => number): number =>
    finished.reduce((total, { record }) => total + of(record), 0);
  return {
    draftTokens: sum(({ draftTokens }) => draftTokens),
    acceptedDraftTokens: sum(({ acceptedDraftTokens }) => acceptedDraftTokens),
  };
}

/** Only slow requests are explained: explaining costs as much as the rest of a span. */
export function isWorthExplaining({ timeToFirstTokenMs, gaps }: ServingRecord): boolean {
  if ((timeToFirstTokenMs ?? 0) >= slowFirstTokenMs) return true;
  return gaps.count > 0 && gaps.maxMs >= slowGapMs && gaps.maxMs > 2 * gaps.p50Ms;
}

function slowestGap(evidence: RequestEvidence | undefined): ServingFacts["slowestGap"] {
  const gap = evidence?.slowGaps[0];
  if (gap === undefined) return undefined;
  const part = gap.parts.find(({ cause }) => cause === gap.cause);
  return {
    ms: gap.ms,
    usualMs: gap.usualMs,
    cause: gap.cause,
    culprit: part?.requests?.[0]?.requestId,
  };
}
