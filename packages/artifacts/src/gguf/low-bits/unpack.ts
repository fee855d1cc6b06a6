import type { MatrixParts } from "../../checkpoint/checkpoint.js";
import { e2m1Table, e4m3Values, singleBitsOfHalf } from "../../program/float-conversion.js";
import { encodedGrids } from "./grids.js";
import { lowBitLayouts, type LowBitName } from "./layouts.js";

/** Where a block goes: its codes as words, the first code lowest, and the scales of its groups. */
interface UnpackedBlock {
  readonly codes: Uint32Array;
  readonly scales: Float32Array;
}

/** Magnitudes, then the same with the sign that bit 3 of a code stands for. */
const signed = (...magnitudes: readonly number[]): Float32Array =>
  Float32Array.from({ length: 16 }, (_, code) => (magnitudes[code & 7] ?? 0) * (code < 8 ? 1 : -1));

const twoBits = signed(8, 25, 43);
const threeBits = signed(4, 12, 20, 28, 36, 44, 52, 62);
const oddNumbers = signed(1, 3, 5, 7, 9, 11, 13, 15);
/** -1, 0 and 1, raised by an eighth; with bit 3, lowered by it. */
const shiftedTernary = Float32Array.from({ length: 16 }, (_, code) =>
  (code & 7) > 2 ? 0 : (code & 7) - 1 + (code < 8 ? 0.125 : -0.125),
);
const everySign = 0x8888_8888;

/** Bit i of a byte as bit 3 of nibble i. */
const signMasks = Uint32Array.from({ length: 256 }, (_, byte) => {
  let mask = 0;
  for (let bit = 0; bit < 8; bit++) mask |= ((byte >> bit) & 1) << (4 * bit + 3);
  return mask;
});

/** Signs of eight weights in seven bits: the eighth makes the number of minus signs even. */
const evenSignMasks = Uint32Array.from({ length: 128 }, (_, bits) => {
  let parity = bits ^ (bits >> 4);
  parity ^= parity >> 2;
  parity ^= parity >> 1;
  return signMasks[bits | ((parity & 1) << 7)] ?? 0;
});

type GridName = keyof typeof encodedGrids;
const decodedGrids = new Map<GridName, Uint32Array | Uint16Array>();

/** Eight codes an entry, four for the grids of three bits. */
function gridOf(name: GridName): Uint32Array | Uint16Array {
  let grid = decodedGrids.get(name);
  if (grid === undefined) {
    const { buffer } = Uint8Array.from(Buffer.from(encodedGrids[name], "base64"));
    grid = name.startsWith("iq3") ? new Uint16Array(buffer) : new Uint32Array(buffer);
    decodedGrids.set(name, grid);
  }
  return grid;
}

const single = new DataView(new ArrayBuffer(4));

function fromHalf(bits: number): number {
  single.setUint32(0, singleBitsOfHalf(bits));
  return single.getFloat32(0);
}

const half = (block: DataView, at: number): number => fromHalf(block.getUint16(at, true));

/** The i-th nibble of bytes from `at` on, the low one first. */
const nibble = (block: DataView, at: number, i: number): number =>
  (block.getUint8(at + (i >> 1)) >> (4 * (i & 1))) & 15;

function unpackIq2Xxs(block: DataView, { codes, scales }: UnpackedBlock): void {
  const grid = gridOf("iq2xxs");
  const d = half(block, 0);
  for (let group = 0; group < 8; group++) {
    const at = 2 + 8 * group;
    const signs = block.getUint32(at + 4, true);
    scales[group] = d * (0.5 + (signs >>> 28)) * 0.25;
    for (let i = 0; i < 4; i++)
      codes[4 * group + i] =
        (grid[block.getUint8(at + i)] ?? 0) | (evenSignMasks[(signs >>> (7 * i)) & 127] ?? 0);
  }
}

function unpackIq2Xs(block: DataView, { codes, scales }: UnpackedBlock): void {
  const grid = gridOf("iq2xs");
  const d = half(block, 0);
  for (let group = 0; group < 16; group++) scales[group] = d * (0.5 + nibble(block, 66, group)) * 0.25;
  for (let i = 0; i < 32; i++) {
    const entry = block.getUint16(2 + 2 * i, true);
    codes[i] = (grid[entry & 511] ?? 0) | (evenSignMasks[entry >> 9] ?? 0);
  }
}

function unpackIq2S(block: DataView, { codes, scales }: UnpackedBlock): void {
  const grid = gridOf("iq2s");
  const d = half(block, 0);
  for (let group = 0; group < 16; group++) scales[group] = d * (0.5 + nibble(block, 74, group)) * 0.25;
  for (let i = 0; i < 32; i++) {
    const high = (block.getUint8(66 + (i >> 2)) >> (2 * (i & 3))) & 3;
    const entry = block.getUint8(2 + i) | (high << 8);
    codes[i] = (grid[entry] ?? 0) | (signMasks[block.getUint8(34 + i)] ?? 0);
  }
}

function unpackIq3Xxs(block: DataView, { codes, scales }: UnpackedBlock): void {
  const grid = gridOf("iq3xxs");
  const d = half(block, 0);
  for (let group = 0; group < 8; group++) {
    const signs = block.getUint32(66 + 4 * group, true);
    scales[group] = d * (0.5 + (signs >>> 28)) * 0.5;
    for (let i = 0; i < 4; i++) {
      const entry = block.getUint16(2 + 8 * group + 2 * i, true);
      const magnitudes = (grid[entry & 255] ?? 0) | ((grid[entry >> 8] ?? 0) << 16);
      codes[4 * group + i] = magnitudes | (evenSignMasks[(signs >>> (7 * i)) & 127] ?? 0);
    }
  }
}

function unpackIq3S(block: DataView, { codes, scales }: UnpackedBlock): void {
  const grid = gridOf("iq3s");
  const d = half(block, 0);
  for (let group = 0; group < 8; group++) scales[group] = d * (1 + 2 * nibble(block, 106, group));
  for (let i = 0; i < 32; i++) {
    const high = block.getUint8(66 + (i >> 2)) >> (2 * (i & 3));
    const low = grid[block.getUint8(2 + 2 * i) | ((high & 1) << 8)] ?? 0;
    const next = grid[block.getUint8(3 + 2 * i) | ((high & 2) << 7)] ?? 0;
    codes[i] = low | (next << 16) | (signMasks[block.getUint8(74 + i)] ?? 0);
  }
}

function unpackIq1S(block: DataView, { codes, scales }: UnpackedBlock): void {
  const grid = gridOf("iq1s");
  const d = half(block, 0);
  for (let group = 0; group < 8; group++) {
    const high = block.getUint16(34 + 2 * group, true);
    scales[group] = d * (2 * ((high >> 12) & 7) + 1);
    for (let i = 0; i < 4; i++) {
      const entry = block.getUint8(2 + 4 * group + i) | (((high >> (3 * i)) & 7) << 8);
      codes[4 * group + i] = (grid[entry] ?? 0) | (high & 0x8000 ? everySign : 0);
    }
  }
}

/** The only type whose f16 scale is in four parts, the highest nibbles of the words of scales. */
function unpackIq1M(block: DataView, { codes, scales }: UnpackedBlock): void {
  const grid = gridOf("iq1s");
  const words = [48, 50, 52, 54].map((at) => block.getUint16(at, true));
  const d = fromHalf(words.reduce((bits, word, i) => bits | ((word >> 12) << (4 * i)), 0));
  for (let group = 0; group < 16; group++)
    scales[group] = d * (2 * (((words[group >> 2] ?? 0) >> (3 * (group & 3))) & 7) + 1);
  for (let i = 0; i < 32; i++) {
    const high = nibble(block, 32, i);
    codes[i] = (grid[block.getUint8(i) | ((high & 7) << 8)] ?? 0) | (high & 8 ? everySign : 0);
  }
}

/** Sets field `at` of 2 bits. */
function putTernary(codes: Uint32Array, at: number, code: number): void {
  codes[at >> 4] = (codes[at >> 4] ?? 0) | (code << (2 * (at & 15)));
}

/** Five digits of base 3 a byte, scaled to the byte's range: multiplied by 3 as often as digits come before, the highest is what overflows. */
function unpackTq1(block: DataView, { codes, scales }: UnpackedBlock): void {
  scales[0] = half(block, 52);
  codes.fill(0);
  const runs = [
    { from: 0, length: 32, digits: 5, at: 0 },
    { from: 32, length: 16, digits: 5, at: 160 },
    { from: 48, length: 4, digits: 4, at: 240 },
  ];
  for (const { from, length, digits, at } of runs)
    for (let i = 0; i < length * digits; i++) {
      const rest = (block.getUint8(from + (i % length)) * 3 ** Math.floor(i / length)) & 255;
      putTernary(codes, at + i, (rest * 3) >> 8);
    }
}

function unpackTq2(block: DataView, { codes, scales }: UnpackedBlock): void {
  scales[0] = half(block, 64);
  codes.fill(0);
  for (let i = 0; i < 256; i++) {
    const byte = block.getUint8(32 * (i >> 7) + (i & 31));
    putTernary(codes, i, (byte >> (2 * ((i >> 5) & 3))) & 3);
  }
}

function unpackNvfp4(block: DataView, { codes, scales }: UnpackedBlock): void {
  for (let group = 0; group < 4; group++) {
    // scales have no sign, and ggml takes the code of NaN for zero
    const scale = e4m3Values[block.getUint8(group) & 0x7f] ?? 0;
    scales[group] = Number.isNaN(scale) ? 0 : scale;
    let [low, high] = [0, 0];
    for (let i = 0; i < 8; i++) {
      const byte = block.getUint8(4 + 8 * group + i);
      low |= (byte & 15) << (4 * i);
      high |= (byte >> 4) << (4 * i);
    }
    codes[2 * group] = low;
    codes[2 * group + 1] = high;
  }
}

interface Unpacking {
  readonly unpack: (block: DataView, out: UnpackedBlock) => void;
  /** Values of the codes; absent for ternary weights, whose codes are one above their values. */
  readonly table?: Float32Array;
}

const unpackings: Readonly<Record<LowBitName, Unpacking>> = {
  IQ2_XXS: { unpack: unpackIq2Xxs, table: twoBits },
  IQ2_XS: { unpack: unpackIq2Xs, table: twoBits },
  IQ2_S: { unpack: unpackIq2S, table: twoBits },
  IQ3_XXS: { unpack: unpackIq3Xxs, table: threeBits },
  IQ3_S: { unpack: unpackIq3S, table: oddNumbers },
  IQ1_S: { unpack: unpackIq1S, table: shiftedTernary },
  IQ1_M: { unpack: unpackIq1M, table: shiftedTernary },
  TQ1_0: { unpack: unpackTq1 },
  TQ2_0: { unpack: unpackTq2 },
  NVFP4: { unpack: unpackNvfp4, table: e2m1Table },
};

/** A tensor's blocks as the matrix that they stand for. */
export function unpackBlocks(name: LowBitName, bytes: Uint8Array): MatrixParts {
  const { type, groupSize, blockElements, blockBytes } = lowBitLayouts[name];
  const { unpack, table } = unpackings[name];
  const numBlocks = bytes.byteLength / blockBytes;
  const wordsPerBlock = (blockElements * (type === "int2" ? 2 : 4)) / 32;
  const groupsPerBlock = blockElements / groupSize;
  const codes = new Uint32Array(numBlocks * wordsPerBlock);
  const scales = new Float32Array(numBlocks * groupsPerBlock);
  for (let block = 0; block < numBlocks; block++) {
    unpack(new DataView(bytes.buffer, bytes.byteOffset + block * blockBytes, blockBytes), {
      codes: codes.subarray(block * wordsPerBlock, (block + 1) * wordsPerBlock),
      scales: scales.subarray(block * groupsPerBlock, (block + 1) * groupsPerBlock),
    });
  }
  const values = new Uint8Array(codes.buffer);
  if (table !== undefined) return { values, scales, groupSize, table };
  return { values, scales, groupSize, zeros: new Float32Array(scales.length).fill(1) };
}
