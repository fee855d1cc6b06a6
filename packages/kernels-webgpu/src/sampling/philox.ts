/** The high half of a product of 32-bit words. */
function highProduct(a: number, b: number): number {
  const [aLow, aHigh, bLow, bHigh] = [a & 0xffff, a >>> 16, b & 0xffff, b >>> 16];
  const low = aLow * bLow;
  const middle = aHigh * bLow + (low >>> 16);
  const cross = aLow * bHigh + (middle % 0x10000);
  return (aHigh * bHigh + Math.floor(middle / 0x10000) + Math.floor(cross / 0x10000)) >>> 0;
}

/**
 * In [0, 1), 53 bits: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011) of key `seed` and counter `index`,
 * as the CPU's kernels draw it.
 */
export function uniform(seed: bigint, index: number): number {
  let [c0, c1, c2, c3] = [index >>> 0, Math.floor(index / 2 ** 32) >>> 0, 0, 0];
  let k0 = Number(BigInt.asUintN(32, seed));
  let k1 = Number(BigInt.asUintN(32, seed >> 32n));
  for (let round = 0; round < 10; round++) {
    const high0 = highProduct(0xd2511f53, c0);
    const low0 = Math.imul(0xd2511f53, c0) >>> 0;
    const high1 = highProduct(0xcd9e8d57, c2);
    const low1 = Math.imul(0xcd9e8d57, c2) >>> 0;
    [c0, c1, c2, c3] = [(high1 ^ c1 ^ k0) >>> 0, low1, (high0 ^ c3 ^ k1) >>> 0, low0];
    k0 = (k0 + 0x9e3779b9) >>> 0;
    k1 = (k1 + 0xbb67ae85) >>> 0;
  }
  // The upper 53 of the 64 bits c1, c0.
  return (c1 * 2 ** 21 + (c0 >>> 11)) * 2 ** -53;
}
