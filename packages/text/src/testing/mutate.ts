import type { TestRandom } from "./random.js";

/**
 * A damaged copy of a file: bits flipped, numbers replaced by extremes, stretches cut out, doubled or swapped, the end cut
 * off. Three changes in four fall into the first `headerBytes`, where lies do most harm.
 */
export function mutateFile(file: Uint8Array, headerBytes: number, random: TestRandom): Uint8Array {
  let bytes = Buffer.from(file);
  const changes = 1 + random.below(3);
  for (let change = 0; change < changes; change++) {
    const area = random.below(4) > 0 ? Math.min(headerBytes, bytes.length) : bytes.length;
    const at = random.below(Math.max(1, area));
    const length = Math.min(1 + random.below(24), bytes.length - at);
    switch (random.below(8)) {
      case 0:
        bytes[at] = (bytes[at] ?? 0) ^ (1 << random.below(8));
        break;
      case 1:
        bytes[at] = random.below(256);
        break;
      case 2:
        writeExtreme(bytes, at, random);
        break;
      case 3:
        bytes = Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + length)]);
        break;
      case 4:
        bytes = Buffer.concat([bytes.subarray(0, at + length), bytes.subarray(at)]);
        break;
      case 5:
        bytes = bytes.subarray(0, at);
        break;
      case 6:
        mutateDigits(bytes, at, random);
        break;
      default:
        bytes.copyWithin(at, random.below(Math.max(1, area)), Math.min(area, at + length));
    }
  }
  return bytes;
}

const extremes = [
  0n,
  1n,
  0x7fn,
  0xffffn,
  0x7fffffffn,
  0xffffffffn,
  1n << 40n,
  1n << 53n,
  1n << 63n,
  (1n << 64n) - 1n,
];

function writeExtreme(bytes: Buffer, at: number, random: TestRandom): void {
  const value = extremes[random.below(extremes.length)] ?? 0n;
  if (at + 8 <= bytes.length && random.below(2) === 0) bytes.writeBigUInt64LE(value, at);
  else if (at + 4 <= bytes.length) bytes.writeUInt32LE(Number(value & 0xffffffffn), at);
}

/** Text headers are hurt most by other numbers that still parse. */
function mutateDigits(bytes: Buffer, from: number, random: TestRandom): void {
  for (let at = from; at < bytes.length; at++) {
    const byte = bytes[at] ?? 0;
    if (byte < 0x30 || byte > 0x39) continue;
    bytes[at] = 0x30 + random.below(10);
    if (random.below(2) === 0) return;
  }
}
