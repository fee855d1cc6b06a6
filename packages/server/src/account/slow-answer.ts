import type { Cause, Engine, Explanation, FinishedRequest } from "@octavo/engine";
import { isWorthExplaining, slowFirstTokenMs, slowGapMs } from "./serving-facts.js";

/** Why an answer was slow, for the log. */
export interface SlowAnswer {
  /** The id for `GET /v1/requests/ID`. */
  readonly engineRequestId: string;
  readonly firstToken?: Slowness;
  readonly gap?: Slowness & { readonly usualMs: number };
}

export interface Slowness {
  readonly ms: number;
  readonly cause: Cause;
  /** The request that contributed most, if any did. */
  readonly culprit?: { readonly requestId: string; readonly tenant: string };
}

/** Undefined if neither the first token nor a gap was slow. */
export function slowAnswer(
  { evidence }: Pick<Engine, "evidence">,
  slowest: FinishedRequest | undefined,
): SlowAnswer | undefined {
  if (slowest === undefined || !isWorthExplaining(slowest.record)) return undefined;
  const found = evidence.request(slowest.requestId);
  const firstToken = found?.firstToken;
  const gap = found?.slowGaps[0];
  const isLate = firstToken !== undefined && firstToken.ms >= slowFirstTokenMs;
  const hasGap = gap !== undefined && gap.ms >= slowGapMs;
  if (!isLate && !hasGap) return undefined;
  return {
    engineRequestId: slowest.requestId,
    ...(isLate && { firstToken: slowness(firstToken) }),
    ...(hasGap && { gap: { ...slowness(gap), usualMs: rounded(gap.usualMs) } }),
  };
}

function slowness({ ms, cause, parts }: Explanation): Slowness {
  const culprit = parts.find((part) => part.cause === cause)?.requests?.[0];
  return {
    ms: rounded(ms),
    cause,
    ...(culprit !== undefined && { culprit: { requestId: culprit.requestId, tenant: culprit.tenant } }),
  };
}

function rounded(ms: number): number {
  return Math.round(ms * 10) / 10;
}
