import { queueDepthHeader, replicaHeader } from "@octavo/protocol";

/** What a gateway or a cluster says of a request in the headers of its answer. */
export interface HeaderFacts {
  readonly tenant: string | undefined;
  readonly replica: string | undefined;
  /** Queue depth of the whole deployment when the request arrived. */
  readonly queueDepth: number | undefined;
  readonly replicaCount: number | undefined;
  readonly cacheHitRatio: number | undefined;
  /** Another model than the one that was asked for answered. */
  readonly isFallback: boolean | undefined;
}

/** In order of trust. `x-agentcc-*`: Agent Command Center; the pinning header of Ray Serve is one that people set themselves. */
const names = {
  tenant: ["x-octavo-tenant", "x-tenant-id"],
  replica: [replicaHeader, "x-replica-id", "x-ray-serve-replica-id"],
  queueDepth: [queueDepthHeader, "x-queue-depth"],
  replicaCount: ["x-octavo-replica-count", "x-replica-count"],
  cacheHitRatio: ["x-octavo-cache-hit-ratio"],
  fallback: ["x-octavo-fallback-used", "x-agentcc-fallback-used"],
} as const;

/** @param headers names in lower case */
export function factsOfHeaders(headers: Readonly<Record<string, string>>): HeaderFacts {
  const fallback = textOf(headers, names.fallback)?.toLowerCase();
  return {
    tenant: textOf(headers, names.tenant),
    replica: textOf(headers, names.replica),
    queueDepth: numberOf(headers, names.queueDepth),
    replicaCount: numberOf(headers, names.replicaCount),
    cacheHitRatio: numberOf(headers, names.cacheHitRatio),
    isFallback: fallback === undefined ? undefined : !["", "false", "0", "none"].includes(fallback),
  };
}

function textOf(headers: Readonly<Record<string, string>>, keys: readonly string[]): string | undefined {
  return keys.map((key) => headers[key]).find((value) => value !== undefined && value !== "");
}

function numberOf(headers: Readonly<Record<string, string>>, keys: readonly string[]): number | undefined {
  const value = Number(textOf(headers, keys) ?? Number.NaN);
  return Number.isFinite(value) && value >= 0 ? value : undefined;
}
