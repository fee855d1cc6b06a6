import { randomUUID } from "node:crypto";
import { OctavoError } from "@octavo/protocol";
import type { Redis } from "ioredis";
import { redisScripts } from "./redis-scripts.js";
import {
  type RateRefusal,
  type RateShare,
  requireAmounts,
  type SharedStore,
  type SlotPool,
  type SpendingWindow,
  type StoredDocument,
  storeUnavailable,
} from "./shared-store.js";

export interface RedisStoreOptions {
  /** Such as `redis://:password@host:6379/0`; `rediss://` for TLS. */
  readonly url: string;
  /** In front of every key. */
  readonly prefix?: string;
  /** A command that takes longer has failed. */
  readonly timeoutMs?: number;
}

/** Counts losses of memory; sums are complete once all instances saw the epoch from its beginning. */
interface Epoch {
  readonly id: string;
  /** When Redis was found empty by one who knew it otherwise; 0 for never. */
  readonly forgottenAtMs: number;
}

const keptAfterEndMs = 3_600_000;

/** State in Redis 6 or newer, shared by all gateways that name the same one. */
export class RedisStore implements SharedStore {
  readonly isShared = true;
  readonly #redis: Redis;
  readonly #prefix: string;
  #epoch: Epoch | undefined;

  private constructor(redis: Redis, prefix: string) {
    this.#redis = redis;
    this.#prefix = prefix;
  }

  /**
   * @throws OctavoError `store_unavailable` when Redis does not answer now, or may evict what is counted there; `invalid_option`
   *   when the URL is none
   */
  static async open({ url, prefix = "octavo", timeoutMs = 500 }: RedisStoreOptions): Promise<RedisStore> {
    const shown = shownUrl(url);
    const RedisClient = await loadRedis();
    const redis = new RedisClient(url, {
      lazyConnect: true,
      connectTimeout: 5000,
      commandTimeout: timeoutMs,
      // what cannot be sent now has failed: grants that arrive late help nobody
      enableOfflineQueue: false,
      maxRetriesPerRequest: 0,
      retryStrategy: (times) => Math.min(times * 100, 2000),
    });
    redis.on("error", () => undefined);
    for (const [name, lua] of Object.entries(redisScripts)) redis.defineCommand(name, { lua });
    const store = new RedisStore(redis, `${prefix}:`);
    try {
      await redis.connect();
      await requireNoEviction(redis);
      await store.#currentEpoch();
    } catch (cause) {
      redis.disconnect();
      if (cause instanceof OctavoError) throw cause;
      throw storeUnavailable(`Redis at ${shown} does not answer: ${(cause as Error).message}`, cause);
    }
    return store;
  }

  async take(window: SpendingWindow, want: number, least: number): Promise<number> {
    requireAmounts(want, least);
    return this.#run(async ({ forgottenAtMs }) => {
      if (window.startsAtMs < forgottenAtMs) return 0;
      const expiry = window.endsAtMs + keptAfterEndMs;
      return Number(
        await this.#script("octavoTake", `window:${window.key}`, window.limit, want, least, expiry),
      );
    });
  }

  async giveBack(window: SpendingWindow, amount: number): Promise<void> {
    if (amount <= 0) return;
    await this.#run(() => this.#script("octavoGiveBack", `window:${window.key}`, amount));
  }

  taken(window: SpendingWindow): Promise<number> {
    return this.#run(async ({ forgottenAtMs }) =>
      window.startsAtMs < forgottenAtMs
        ? window.limit
        : Number(await this.#script("octavoTaken", `window:${window.key}`)),
    );
  }

  /** One round trip, however many buckets. */
  async takeRates(shares: readonly RateShare[]): Promise<RateRefusal | undefined> {
    for (const { amount } of shares) requireAmounts(amount, amount);
    if (shares.length === 0) return undefined;
    return this.#run(async ({ forgottenAtMs }) => {
      const reply = await this.#script(
        "octavoTakeRates",
        shares.map(({ bucket }) => `rate:${bucket.key}`),
        forgottenAtMs,
        ...shares.flatMap(({ bucket, amount }) => [1000 / bucket.perSecond, bucket.burst, amount]),
      );
      const [index, waitMs] = reply as [number, number];
      return index < 0 ? undefined : { index, waitMs: Math.max(1, waitMs) };
    });
  }

  async giveBackRates(shares: readonly RateShare[]): Promise<void> {
    const returned = shares.filter(({ amount }) => amount > 0);
    if (returned.length === 0) return;
    await this.#run(() =>
      this.#script(
        "octavoGiveBackRates",
        returned.map(({ bucket }) => `rate:${bucket.key}`),
        ...returned.flatMap(({ bucket, amount }) => [1000 / bucket.perSecond, amount]),
      ),
    );
  }

  holdSlots(pool: SlotPool, owner: string, wanted: number, ttlMs: number): Promise<number> {
    return this.#run(async ({ forgottenAtMs }) =>
      Number(
        await this.#script(
          "octavoHoldSlots",
          `slots:${pool.key}`,
          owner,
          wanted,
          pool.limit,
          ttlMs,
          forgottenAtMs,
        ),
      ),
    );
  }

  readDocument(name: string): Promise<StoredDocument | undefined> {
    return this.#run(async () => {
      const [value, version] = await this.#redis.hmget(`${this.#prefix}document:${name}`, "value", "version");
      return value === null || value === undefined ? undefined : { value, version: Number(version) };
    });
  }

  writeDocument(name: string, value: string, version: number): Promise<boolean> {
    return this.#run(
      async () => (await this.#script("octavoWriteDocument", `document:${name}`, value, version)) === 1,
    );
  }

  readBlob(key: string): Promise<string | undefined> {
    return this.#run(async () => (await this.#redis.get(`${this.#prefix}blob:${key}`)) ?? undefined);
  }

  async writeBlob(key: string, value: string, ttlMs: number): Promise<void> {
    await this.#run(() =>
      this.#redis.set(`${this.#prefix}blob:${key}`, value, "PX", Math.max(1, Math.round(ttlMs))),
    );
  }

  async deleteBlobs(keys: readonly string[]): Promise<void> {
    if (keys.length === 0) return;
    await this.#run(() => this.#redis.del(keys.map((key) => `${this.#prefix}blob:${key}`)));
  }

  async close(): Promise<void> {
    this.#redis.disconnect();
    return Promise.resolve();
  }

  async #script(
    name: keyof typeof redisScripts,
    key: string | readonly string[],
    ...values: (string | number)[]
  ): Promise<unknown> {
    const keys = ["epoch"].concat(key).map((one) => this.#prefix + one);
    const commands = this.#redis as unknown as Record<
      string,
      (...input: (string | number)[]) => Promise<unknown>
    >;
    return commands[name]!(keys.length, ...keys, this.#epoch?.id ?? "", ...values);
  }

  /** Runs in the epoch that is known, and once more in the new one if Redis has another. */
  async #run<Value>(command: (epoch: Epoch) => Promise<Value>): Promise<Value> {
    try {
      const known = await this.#currentEpoch();
      try {
        return await command(known);
      } catch (error) {
        if (!(error instanceof Error && error.message.includes("EPOCH"))) throw error;
        this.#epoch = await this.#beginEpoch(known);
        return await command(this.#epoch);
      }
    } catch (cause) {
      if (cause instanceof OctavoError) throw cause;
      throw storeUnavailable(`Redis does not answer: ${(cause as Error).message}`, cause);
    }
  }

  async #currentEpoch(): Promise<Epoch> {
    this.#epoch ??= await this.#beginEpoch(undefined);
    return this.#epoch;
  }

  /**
   * The epoch that Redis has, begun where it has none. Who knew an earlier one knows of a loss, and replaces an epoch that was
   * begun without that knowledge.
   */
  async #beginEpoch(known: Epoch | undefined): Promise<Epoch> {
    const commands = this.#redis as unknown as Record<
      string,
      (...input: (string | number)[]) => Promise<unknown>
    >;
    const begin = async (replaced: string): Promise<Epoch> => {
      const key = `${this.#prefix}epoch`;
      return readEpoch(
        String(
          await commands.octavoBeginEpoch!(1, key, randomUUID(), replaced, known === undefined ? "0" : "1"),
        ),
      );
    };
    const found = await begin("");
    const isKnownLoss = known === undefined || found.forgottenAtMs > known.forgottenAtMs;
    return isKnownLoss ? found : begin(found.id);
  }
}

function readEpoch(text: string): Epoch {
  return { id: text, forgottenAtMs: Number(text.split(":")[1]) };
}

async function loadRedis(): Promise<typeof Redis> {
  try {
    return (await import("ioredis")).Redis;
  } catch (cause) {
    throw storeUnavailable("A store in Redis needs its client: npm install ioredis@6", cause);
  }
}

/** A Redis that drops keys when memory is short would forget what was spent. Where it does not say, it is believed. */
async function requireNoEviction(redis: Redis): Promise<void> {
  const setting = async (name: string): Promise<string | undefined> => {
    const reply = (await redis.config("GET", name).catch(() => [])) as string[];
    return reply[1];
  };
  const policy = await setting("maxmemory-policy");
  if (policy === undefined || policy === "noeviction" || (await setting("maxmemory")) === "0") return;
  throw storeUnavailable(
    `Redis may drop keys when its memory is full (maxmemory-policy ${policy}); set it to noeviction.`,
  );
}

/** The URL as errors show it: without its password. */
function shownUrl(url: string): string {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (parsed !== undefined && /^rediss?:$/.test(parsed.protocol)) return `${parsed.protocol}//${parsed.host}`;
  throw new OctavoError("invalid_option", "url: expected one such as redis://127.0.0.1:6379", {
    param: "url",
  });
}
