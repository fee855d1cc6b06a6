/** Bytes of pixels, row by row, `channels` of each. */
export interface Raster {
  readonly width: number;
  readonly height: number;
  readonly channels: number;
  readonly data: Uint8Array;
}

export type ResizeFilter = "bilinear" | "bicubic";

interface Kernel {
  /** How far it reaches, in pixels of the smaller of the two images. */
  readonly support: number;
  readonly weigh: (distance: number) => number;
}

const kernels: Readonly<Record<ResizeFilter, Kernel>> = {
  bilinear: { support: 1, weigh: (x) => Math.max(0, 1 - Math.abs(x)) },
  // Keys' cubic convolution with a = -1/2.
  bicubic: {
    support: 2,
    weigh: (x) => {
      const d = Math.abs(x);
      if (d < 1) return (1.5 * d - 2.5) * d * d + 1;
      return d < 2 ? ((-0.5 * d + 2.5) * d - 4) * d + 2 : 0;
    },
  },
};

/** Bits behind the point of a weight: a byte and the sum's sign leave so many. */
const precisionBits = 22;

/** What one output pixel takes: weights of neighbours from `first` on. */
interface Tap {
  readonly first: number;
  readonly weights: Int32Array;
}

/**
 * An image of another size, as Pillow's `Image.resize` makes it: the kernel is stretched where the image shrinks; rows before columns, each
 * in 22 bits of fixed point and rounded to bytes (described by Pillow's Resample.c). Equal bytes, for any size.
 */
export function resize(image: Raster, width: number, height: number, filter: ResizeFilter): Raster {
  return alongHeight(alongWidth(image, width, filter), height, filter);
}

function alongWidth(image: Raster, width: number, filter: ResizeFilter): Raster {
  if (width === image.width) return image;
  const { channels, height, data } = image;
  const taps = tapsOf(image.width, width, filter);
  const out = new Uint8Array(width * height * channels);
  for (let y = 0; y < height; y++) {
    const row = y * image.width * channels;
    for (const [x, { first, weights }] of taps.entries())
      for (let channel = 0; channel < channels; channel++)
        out[(y * width + x) * channels + channel] = sumOf(
          data,
          row + first * channels + channel,
          channels,
          weights,
        );
  }
  return { ...image, width, data: out };
}

function alongHeight(image: Raster, height: number, filter: ResizeFilter): Raster {
  if (height === image.height) return image;
  const stride = image.width * image.channels;
  const out = new Uint8Array(stride * height);
  for (const [y, { first, weights }] of tapsOf(image.height, height, filter).entries())
    for (let column = 0; column < stride; column++)
      out[y * stride + column] = sumOf(image.data, first * stride + column, stride, weights);
  return { ...image, height, data: out };
}

function sumOf(data: Uint8Array, start: number, step: number, weights: Int32Array): number {
  let sum = 1 << (precisionBits - 1);
  for (let tap = 0, at = start; tap < weights.length; tap++, at += step) sum += data[at]! * weights[tap]!;
  return Math.min(255, Math.max(0, sum >> precisionBits));
}

function tapsOf(from: number, to: number, filter: ResizeFilter): Tap[] {
  const { support, weigh } = kernels[filter];
  const scale = from / to;
  const stretch = Math.max(scale, 1);
  const reach = support * stretch;
  return Array.from({ length: to }, (_, pixel) => {
    const center = (pixel + 0.5) * scale;
    const first = Math.max(0, Math.trunc(center - reach + 0.5));
    const end = Math.min(from, Math.trunc(center + reach + 0.5));
    const exact = Array.from({ length: end - first }, (__, tap) =>
      weigh((tap + first - center + 0.5) / stretch),
    );
    const total = exact.reduce((sum, weight) => sum + weight, 0);
    const fixed = exact.map((weight) => {
      const scaled = (weight / total) * (1 << precisionBits);
      return Math.trunc(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
    });
    return { first, weights: Int32Array.from(fixed) };
  });
}
