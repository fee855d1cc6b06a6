const prime1 = 0x9e3779b185ebca87n;
const prime2 = 0xc2b2ae3d27d4eb4fn;
const prime3 = 0x165667b19e3779f9n;
const prime4 = 0x85ebca77c2b2ae63n;
const prime5 = 0x27d4eb2f165667c5n;

const wrap = (value: bigint): bigint => BigInt.asUintN(64, value);
const rotated = (value: bigint, bits: bigint): bigint => wrap((value << bits) | (value >> (64n - bits)));
const take = (lane: bigint, input: bigint): bigint =>
  wrap(rotated(wrap(lane + input * prime2), 31n) * prime1);

/** XXH64 with seed 0, step for step as doc/xxhash_spec.md of xxHash has it; 16 hexadecimal digits. Slow. */
export function xxhash64(bytes: Uint8Array): string {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let at = 0;
  let digest: bigint = prime5;
  if (bytes.length >= 32) {
    const lanes = [wrap(prime1 + prime2), prime2, 0n, wrap(-prime1)];
    for (; at + 32 <= bytes.length; at += 32)
      for (const [lane, value] of lanes.entries())
        lanes[lane] = take(value, view.getBigUint64(at + 8 * lane, true));
    const turns = [1n, 7n, 12n, 18n];
    digest = wrap(lanes.reduce((sum, lane, index) => sum + rotated(lane, turns[index] ?? 0n), 0n));
    for (const lane of lanes) digest = wrap((digest ^ take(0n, lane)) * prime1 + prime4);
  }
  digest = wrap(digest + BigInt(bytes.length));
  for (; at + 8 <= bytes.length; at += 8)
    digest = wrap(rotated(digest ^ take(0n, view.getBigUint64(at, true)), 27n) * prime1 + prime4);
  if (at + 4 <= bytes.length) {
    digest = wrap(rotated(digest ^ wrap(BigInt(view.getUint32(at, true)) * prime1), 23n) * prime2 + prime3);
    at += 4;
  }
  for (; at < bytes.length; at += 1)
    digest = wrap(rotated(digest ^ wrap(BigInt(view.getUint8(at)) * prime5), 11n) * prime1);
  digest = wrap((digest ^ (digest >> 33n)) * prime2);
  digest = wrap((digest ^ (digest >> 29n)) * prime3);
  return (digest ^ (digest >> 32n)).toString(16).padStart(16, "0");
}
