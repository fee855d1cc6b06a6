import {
  asObjects,
  asRecord,
  asString,
  type CachedPrefixInfo,
  type JsonFields,
  replicaKeyHeader,
  type WarmPrefixesRequest,
} from "@octavo/protocol";
import { request } from "undici";

export interface PrefixWarmUp {
  /** The replica that is about to take calls, and those that do. */
  readonly url: string;
  readonly others: readonly string[];
  /** What the replicas let the cluster in by. */
  readonly key: string;
  /** For all of it. */
  readonly timeoutMs: number;
}

/** Replicas that are asked, and tokens that are computed, at most. */
const maxAsked = 8;
const maxTokens = 32_768;

/**
 * Has a replica compute the prefixes that requests found most in the caches of the others, each under its own scope and salt, the
 * hottest first. Resolves with the number of tokens; what fails, or is not done in time, costs only later cache hits.
 */
export async function warmPrefixes({ url, others, key, timeoutMs }: PrefixWarmUp): Promise<number> {
  const endMs = performance.now() + timeoutMs;
  const signal = AbortSignal.timeout(Math.ceil(timeoutMs));
  const call = async (to: string, body?: WarmPrefixesRequest): Promise<JsonFields> => {
    const answer = await request(to, {
      signal,
      headers: { [replicaKeyHeader]: key, ...(body && { "content-type": "application/json" }) },
      ...(body && { method: "POST", body: JSON.stringify(body) }),
    });
    const value = asRecord(await answer.body.json());
    return answer.statusCode === 200 ? value : {};
  };
  try {
    const heard = await Promise.all(
      others.slice(0, maxAsked).map((other) =>
        call(`${other}/prefix_cache/hot?max_tokens=${maxTokens}`).then(
          ({ prefixes }) => asObjects(prefixes).flatMap(cachedPrefixOf),
          () => [],
        ),
      ),
    );
    const prefixes = hottestOf(heard.flat());
    const leftMs = endMs - performance.now();
    if (prefixes.length === 0 || leftMs <= 0) return 0;
    // the replica ends in time by itself, and says how far it came
    const done = await call(`${url}/prefix_cache/warm`, { prefixes, timeout_ms: Math.ceil(leftMs * 0.9) });
    return Number(done["tokens"] ?? 0);
  } catch {
    return 0;
  }
}

function cachedPrefixOf(value: JsonFields): readonly CachedPrefixInfo[] {
  const { tokens, heat } = value;
  if (!Array.isArray(tokens)) return [];
  return [
    {
      tokens: tokens.filter((token) => typeof token === "number"),
      cache_scope: asString(value["cache_scope"]) ?? null,
      cache_salt: asString(value["cache_salt"]) ?? null,
      heat: typeof heat === "number" ? heat : 0,
    },
  ];
}

/** The same prefix at several replicas is as hot as at all of them together. */
function hottestOf(all: readonly CachedPrefixInfo[]): CachedPrefixInfo[] {
  const merged = new Map<string, CachedPrefixInfo>();
  for (const one of all) {
    const name = JSON.stringify([one.cache_scope, one.cache_salt, one.tokens]);
    merged.set(name, { ...one, heat: (one.heat ?? 0) + (merged.get(name)?.heat ?? 0) });
  }
  let room = maxTokens;
  return [...merged.values()]
    .toSorted((a, b) => (b.heat ?? 0) - (a.heat ?? 0))
    .slice(0, 1024)
    .filter(({ tokens }) => {
      if (tokens.length > room) return false;
      room -= tokens.length;
      return true;
    });
}
