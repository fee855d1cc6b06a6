/** A cached prefix that requests came back to, and what separates it from others. */
export interface HotPrefix {
  /** Full blocks. */
  readonly tokens: Int32Array;
  readonly cacheScope: string | undefined;
  readonly cacheSalt: string | undefined;
  /** Requests that found it, the older ones counting less. */
  readonly heat: number;
}

interface Entry {
  readonly prefix: Omit<HotPrefix, "heat">;
  heat: number;
  atMs: number;
}

/** What is remembered, at most; the coldest go. */
const maxPrefixes = 256;
const maxTokens = 2 ** 18;
const halfLifeMs = 300_000;

/**
 * Which prefixes requests found in the cache, by how often of late: another replica of the model starts with them. A newcomer
 * inherits the heat of those that made room for it, as in the Space-Saving algorithm (Metwally, Agrawal and El Abbadi 2005), so that
 * it can come to stay.
 */
export class PrefixHeat {
  readonly #entries = new Map<string, Entry>();
  #numTokens = 0;

  /** A request found `numTokens` of its `tokens`, whose last block's hash is `hash`, which covers scope and salt. */
  note(
    hash: string,
    tokens: Int32Array,
    numTokens: number,
    terms: Pick<HotPrefix, "cacheScope" | "cacheSalt">,
    nowMs = performance.now(),
  ): void {
    const found = this.#entries.get(hash);
    if (found !== undefined) {
      found.heat = heatOf(found, nowMs) + 1;
      found.atMs = nowMs;
      return;
    }
    if (numTokens > maxTokens) return;
    const { cacheScope, cacheSalt } = terms;
    const prefix = { tokens: tokens.slice(0, numTokens), cacheScope, cacheSalt };
    this.#numTokens += numTokens;
    let inherited = 0;
    while (this.#entries.size >= maxPrefixes || this.#numTokens > maxTokens)
      inherited = this.#dropColdest(nowMs);
    this.#entries.set(hash, { prefix, heat: inherited + 1, atMs: nowMs });
  }

  /** The hottest first, as many as `limit` tokens hold. */
  hottest(limit: number, nowMs = performance.now()): readonly HotPrefix[] {
    const all = Array.from(this.#entries.values(), (entry) => ({
      ...entry.prefix,
      heat: heatOf(entry, nowMs),
    })).toSorted((a, b) => b.heat - a.heat);
    let room = limit;
    return all.filter(({ tokens }) => {
      if (tokens.length > room) return false;
      room -= tokens.length;
      return true;
    });
  }

  clear(): void {
    this.#entries.clear();
    this.#numTokens = 0;
  }

  /** Returns its heat. */
  #dropColdest(nowMs: number): number {
    let coldest: [string, Entry] | undefined;
    for (const one of this.#entries)
      if (coldest === undefined || heatOf(one[1], nowMs) < heatOf(coldest[1], nowMs)) coldest = one;
    if (coldest === undefined) return 0;
    this.#entries.delete(coldest[0]);
    this.#numTokens -= coldest[1].prefix.tokens.length;
    return heatOf(coldest[1], nowMs);
  }
}

function heatOf({ heat, atMs }: Entry, nowMs: number): number {
  return heat * 0.5 ** ((nowMs - atMs) / halfLifeMs);
}
