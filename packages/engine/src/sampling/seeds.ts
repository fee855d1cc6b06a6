import { randomBytes } from "node:crypto";

function randomSeed(): bigint {
  return randomBytes(8).readBigUInt64LE();
}

/**
 * Seed of the `index`-th sequence of a request. The first keeps the request's seed, so that n = 1 samples what the first of
 * several samples; the others take step `index` of SplitMix64 (Steele, Lea, Flood 2014) from there, so that neither they nor
 * requests with adjacent seeds share a stream.
 */
export function sequenceSeed(seed: bigint, index: number): bigint {
  const start = BigInt.asUintN(64, seed);
  if (index === 0) return start;
  let mixed = BigInt.asUintN(64, start + 0x9e3779b97f4a7c15n * BigInt(index));
  mixed = BigInt.asUintN(64, (mixed ^ (mixed >> 30n)) * 0xbf58476d1ce4e5b9n);
  mixed = BigInt.asUintN(64, (mixed ^ (mixed >> 27n)) * 0x94d049bb133111ebn);
  return mixed ^ (mixed >> 31n);
}

/** Seeds of the requests that bring none: by chance, or the same ones in the same order for the same `seed`. */
export function seedSource(seed: number | undefined): () => bigint {
  if (seed === undefined) return randomSeed;
  let numRequests = 0;
  return () => sequenceSeed(BigInt(seed), (numRequests += 1));
}
