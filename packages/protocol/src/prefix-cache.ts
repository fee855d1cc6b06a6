import { z } from "zod";
import { listOf, maxTokenId } from "./fields.js";

const separation = z.string().max(4096);

/** A cached prefix and what separates it from others, as replicas of one cluster hand it on. */
const cachedPrefix = z.strictObject({
  tokens: listOf(z.int().min(0).max(maxTokenId), { min: 1, max: 1_048_576 }),
  /** Whose it is. */
  cache_scope: separation.nullish(),
  cache_salt: separation.nullish(),
  /** Requests that found it, the older ones counting less. */
  heat: z.number().min(0).nullish(),
});

export type CachedPrefixInfo = z.output<typeof cachedPrefix>;

export const warmPrefixesRequest = z.strictObject({
  /** The first is computed first. */
  prefixes: listOf(cachedPrefix, { min: 1, max: 1024 }),
  /** What is not computed by then is left out. */
  timeout_ms: z.int().min(1).max(600_000),
});

export type WarmPrefixesRequest = z.output<typeof warmPrefixesRequest>;
