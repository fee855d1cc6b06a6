import { OctavoError } from "@octavo/protocol";
import { z } from "zod";
import { byteSize, timeSpan } from "../config/fields.js";
import { EmbeddedStore } from "./embedded-store.js";
import { RedisStore } from "./redis-store.js";
import type { SharedStore } from "./shared-store.js";

/** Where limits, budgets, rollouts and cached answers are kept: in this process, in a file besides, or in Redis. */
export const storeSchema = z
  .strictObject({
    /** Shared by all gateways that name it, such as redis://:password@host:6379/0. */
    redis: z.string().min(1).optional(),
    /** In front of every key in Redis. */
    prefix: z.string().min(1).default("octavo"),
    /** A command to Redis that takes longer has failed. */
    timeout: timeSpan.default(500),
    /** Keeps budgets and rollouts of one gateway over restarts. */
    file: z.string().min(1).optional(),
    /** Limit on cached answers in this process's memory. */
    max_cache: byteSize.default(256 * 1024 ** 2),
  })
  .refine(({ redis, file }) => redis === undefined || file === undefined, "give either redis or file");

export type StoreConfig = z.output<typeof storeSchema>;

/** Throws `store_unavailable` or `invalid_option` where it cannot be opened. */
export async function openStore(config: StoreConfig, nowMs: () => number): Promise<SharedStore> {
  const { redis, prefix, timeout, file, max_cache: maxBlobBytes } = config;
  if (redis !== undefined) return RedisStore.open({ url: redis, prefix, timeoutMs: timeout });
  return new EmbeddedStore({ nowMs, maxBlobBytes, ...(file !== undefined && { file }) });
}

/** Stages that count: apart, each process would count for itself. */
const counting = ["rate_limits", "budgets", "rollouts"] as const;

/** Throws `invalid_option` where several processes would each grant the whole of a limit. */
export function requireSharedStore(
  { store, stages }: { readonly store: StoreConfig; readonly stages: ReadonlyMap<string, unknown> },
  numProcesses: number,
): void {
  const counted = counting.filter((name) => stages.has(name));
  if (numProcesses <= 1 || store.redis !== undefined || counted.length === 0) return;
  throw new OctavoError(
    "invalid_option",
    `${counted.join(", ")} of ${numProcesses} workers count together in Redis alone; give store.redis, or one worker.`,
    { param: "store" },
  );
}
