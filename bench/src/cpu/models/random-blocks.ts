import { createCipheriv, createHash } from "node:crypto";
import { normalQuantile } from "@octavo/statistics";
import { toBfloat16, toHalf } from "@octavo/artifacts/testing/float-bits";
import { blockLayout, type TensorType } from "./quantisation-mix.js";
import type { TensorSpec } from "./tensors.js";

/**
 * Bytes of random tensors in their storage types: codes come straight from a cipher's key stream (AES-CTR under a key made of
 * the tensor's name), at the speed of memory and the same everywhere; block scales are then set so that the values have the
 * deviation asked for and mean zero. Codes are thus uniform instead of normal, which no kernel can tell.
 */
export function* randomTensor(tensor: TensorSpec, chunkBytes = 8 << 20): Generator<Uint8Array, void> {
  const { elements, bytes } = blockLayout(tensor.type);
  const stream = createCipheriv(
    "aes-128-ctr",
    createHash("md5").update(tensor.name).digest(),
    Buffer.alloc(16),
  );
  const shape = shapeBlocks[tensor.type](tensor, bytes);
  const blocksPerChunk = Math.max(1, Math.floor(chunkBytes / bytes / elements)) * elements;
  const zeros = Buffer.alloc(Math.min(tensor.byteLength, blocksPerChunk * bytes));
  for (let at = 0; at < tensor.byteLength; at += zeros.byteLength) {
    const random = stream.update(zeros.subarray(0, Math.min(zeros.byteLength, tensor.byteLength - at)));
    // The cipher's own buffer may start anywhere.
    const chunk = new Uint8Array(random.byteLength);
    chunk.set(random);
    shape(chunk);
    yield chunk;
  }
}

type ShapeChunk = (chunk: Uint8Array) => void;

const SCALES = 256;

const shapeBlocks: Readonly<Record<TensorType, (tensor: TensorSpec, blockBytes: number) => ShapeChunk>> = {
  f32: ({ deviation, mean }) => {
    return (chunk) => {
      const words = new Uint32Array(chunk.buffer);
      const values = new Float32Array(chunk.buffer);
      for (let i = 0; i < words.length; i++) {
        values[i] = mean + deviation * normalQuantile(((words[i] ?? 0) + 0.5) / 2 ** 32);
      }
    };
  },
  bf16: (tensor) => sixteenBits(tensor, toBfloat16),
  f16: (tensor) => sixteenBits(tensor, toHalf),
  // Codes 0 ... 15 stand for -8 ... 7: a scale of either sign takes their mean away.
  q4_0: ({ deviation }, bytes) => halfScales(signedScales(deviation / deviationOfCodes(16)), bytes, 0),
  q5_0: ({ deviation }, bytes) => halfScales(signedScales(deviation / deviationOfCodes(32)), bytes, 0),
  q8_0: ({ deviation }, bytes) => {
    const scales = halfScales(signedScales(deviation / deviationOfCodes(255)), bytes, 0);
    return (chunk) => {
      // The quantiser never writes -128.
      for (let i = 0; i < chunk.length; i++) if (chunk[i] === 128) chunk[i] = 129;
      scales(chunk);
    };
  },
  q4_k: ({ deviation }, bytes) => shapeQ4K(deviation, bytes),
  // 16 signed 8-bit scales of any sign multiply codes of -32 ... 31; their root mean square is that of -128 ... 127.
  q6_k: ({ deviation }, bytes) =>
    halfScales(unsignedScales(deviation / (deviationOfCodes(64) * deviationOfCodes(256))), bytes, 208),
};

let quantiles: Float64Array | undefined;

/** Normal values: 16 random bits choose one of the quantiles. */
function sixteenBits({ deviation, mean }: TensorSpec, encode: (value: number) => number): ShapeChunk {
  // They are the same for all tensors, and slow to find.
  quantiles ??= Float64Array.from({ length: 65_536 }, (_, index) => normalQuantile((index + 0.5) / 65_536));
  const table = Uint16Array.from(quantiles, (quantile) => encode(mean + deviation * quantile));
  return (chunk) => {
    const values = new Uint16Array(chunk.buffer);
    for (let i = 0; i < values.length; i++) values[i] = table[values[i] ?? 0] ?? 0;
  };
}

/** Root mean square of `levels` equally spaced codes around their mean. */
function deviationOfCodes(levels: number): number {
  return Math.sqrt((levels * levels - 1) / 12);
}

/** f16 bits of scales within a third of `scale`. */
function unsignedScales(scale: number): Uint16Array {
  return Uint16Array.from({ length: SCALES }, (_, index) =>
    toHalf(scale * (1 + (2 / 3) * ((index + 0.5) / SCALES - 0.5))),
  );
}

function signedScales(scale: number): Uint16Array {
  return unsignedScales(scale).map((half, index) => (index % 2 === 0 ? half : half | 0x8000));
}

/** Replaces the two bytes at `offset` of each block by the scale that the first of them chooses. */
function halfScales(scales: Uint16Array, blockBytes: number, offset: number): ShapeChunk {
  return (chunk) => {
    for (let at = offset; at < chunk.length; at += blockBytes) {
      const half = scales[chunk[at] ?? 0] ?? 0;
      chunk[at] = half & 255;
      chunk[at + 1] = half >> 8;
    }
  };
}

/**
 * d, dmin: f16; 12 bytes of eight 6-bit scales and minima, here the same number for both and between 32 and 63; nibbles. With
 * w = d scale q - dmin min and dmin = 7.5 d the values lie evenly around zero.
 */
function shapeQ4K(deviation: number, blockBytes: number): ShapeChunk {
  const meanScale = 47.5;
  const scales = unsignedScales(deviation / (deviationOfCodes(16) * meanScale));
  const minima = unsignedScales((7.5 * deviation) / (deviationOfCodes(16) * meanScale));
  return (chunk) => {
    for (let block = 0; block < chunk.length; block += blockBytes) {
      const choice = chunk[block] ?? 0;
      const d = scales[choice] ?? 0;
      const dmin = minima[choice] ?? 0;
      chunk[block] = d & 255;
      chunk[block + 1] = d >> 8;
      chunk[block + 2] = dmin & 255;
      chunk[block + 3] = dmin >> 8;
      for (let j = 0; j < 4; j++) {
        const at = block + 4 + j;
        const first = 32 + ((chunk[at] ?? 0) & 31);
        const second = 32 + ((chunk[at + 4] ?? 0) & 31);
        chunk[at] = first | ((second >> 4) << 6);
        chunk[at + 4] = first | ((second >> 4) << 6);
        chunk[at + 8] = (second & 15) | ((second & 15) << 4);
      }
    }
  };
}
