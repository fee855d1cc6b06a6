import type { BudgetProcessing } from "@octavo/artifacts/vision/gemma4-vision";
import type { ImageProcessing, ShapedProcessing } from "@octavo/artifacts/vision/image-processing";
import type { VisionConfig } from "@octavo/artifacts/vision/vision-config";
import { OctavoError } from "@octavo/protocol/errors";
import { type Raster, resize } from "./resize.js";

/** How an image is cut; see `VisionConfig`. */
export type PatchLayout = Pick<VisionConfig, "patchSize" | "patchesPerSide" | "poolSize">;

/** How many patches an image has in each direction. */
export interface PatchGrid {
  readonly rows: number;
  readonly columns: number;
}

interface Size {
  readonly width: number;
  readonly height: number;
}

/** Of an image's longer side to its shorter one. */
export const longestRatio = 200;

/**
 * The size that an image which keeps its shape gets: multiples, within bounds of pixels (`smart_resize` of transformers' Qwen2VL).
 * @throws OctavoError `invalid_request` for an image that is longer than `longestRatio` says
 */
export function shapedSize(
  { width, height }: Size,
  { multiple, minPixels, maxPixels }: ShapedProcessing,
): Size {
  if (Math.max(width, height) > longestRatio * Math.min(width, height))
    throw new OctavoError("invalid_request", `The image of ${width} x ${height} pixels is too long.`);
  const rounded = (side: number): number => multiple * roundHalfEven(side / multiple);
  const [wide, high] = [rounded(width), rounded(height)];
  if (wide * high > maxPixels) {
    const by = Math.sqrt((height * width) / maxPixels);
    const fit = (side: number): number => Math.max(multiple, Math.floor(side / by / multiple) * multiple);
    return { width: fit(width), height: fit(height) };
  }
  if (wide * high >= minPixels) return { width: wide, height: high };
  const by = Math.sqrt(minPixels / (height * width));
  const fit = (side: number): number => Math.ceil((side * by) / multiple) * multiple;
  return { width: fit(width), height: fit(height) };
}

/**
 * The size that an image gets within a budget of tokens: the largest of its shape, in multiples (`get_aspect_ratio_preserving_size` of
 * transformers' Gemma 4).
 */
export function budgetSize({ width, height }: Size, { multiple, maxTokens }: BudgetProcessing): Size {
  const factor = Math.sqrt((maxTokens * multiple ** 2) / (height * width));
  const [wide, high] = [width, height].map((side) => Math.floor((factor * side) / multiple)) as [
    number,
    number,
  ];
  // One that is long and thin is a token wide, or high.
  const long = (ratio: number): number => Math.min(Math.floor(ratio), maxTokens);
  if (high === 0) return { width: long(width / height) * multiple, height: multiple };
  if (wide === 0) return { width: multiple, height: long(height / width) * multiple };
  return { width: wide * multiple, height: high * multiple };
}

/** As Python's `round`. */
function roundHalfEven(value: number): number {
  const floor = Math.floor(value);
  if (value - floor !== 0.5) return Math.round(value);
  return floor % 2 === 0 ? floor : floor + 1;
}

/** `[3, height, width]`: the image resized, rescaled and normalised. */
export function pixelsOf(image: Raster, processing: ImageProcessing): Float32Array {
  const { width, height, resample, scale, mean, deviation } = processing;
  const { data, channels } = resize(image, width, height, resample);
  const pixels = new Float32Array(channels * width * height);
  for (let channel = 0; channel < channels; channel++) {
    const [center = 0, spread = 1] = [mean[channel], deviation[channel]];
    for (let at = 0; at < width * height; at++)
      pixels[channel * width * height + at] = (data[at * channels + channel]! * scale - center) / spread;
  }
  return pixels;
}

/** Where each patch lies, counted by rows: patches that become one token side by side, tokens by rows. */
export function patchOrder({ rows, columns }: PatchGrid, poolSize: number): Int32Array {
  const tokens = columns / poolSize;
  const positions = new Int32Array(rows * columns);
  let next = 0;
  for (let token = 0; token < positions.length / poolSize ** 2; token++) {
    const [top, left] = [Math.floor(token / tokens) * poolSize, (token % tokens) * poolSize];
    for (let patch = 0; patch < poolSize ** 2; patch++) {
      const [y, x] = [top + Math.floor(patch / poolSize), left + (patch % poolSize)];
      positions[next++] = y * columns + x;
    }
  }
  return positions;
}

/** `[patches, 3 * patchSize * patchSize]` in the order of `patchOrder`, each patch by channels, then rows. */
export function patchesOf(pixels: Float32Array, layout: PatchLayout): Float32Array {
  const { patchesPerSide: side } = layout;
  return cut(pixels, { rows: side, columns: side }, { ...layout, moments: 1 });
}

/** `[patches, 3 * moments * patchSize * patchSize]` in the order of `patchOrder`: of each channel the same patch at all moments. */
export function cut(
  pixels: Float32Array,
  grid: PatchGrid,
  {
    patchSize,
    poolSize,
    moments,
  }: { readonly patchSize: number; readonly poolSize: number; readonly moments: number },
): Float32Array {
  const [height, width] = [grid.rows * patchSize, grid.columns * patchSize];
  const numChannels = pixels.length / (height * width);
  const patches = new Float32Array(pixels.length * moments);
  let next = 0;
  for (const position of patchOrder(grid, poolSize)) {
    const top = Math.floor(position / grid.columns) * patchSize;
    const left = (position % grid.columns) * patchSize;
    for (let channel = 0; channel < numChannels; channel++)
      for (let moment = 0; moment < moments; moment++)
        for (let y = top; y < top + patchSize; y++, next += patchSize) {
          const from = (channel * height + y) * width + left;
          patches.set(pixels.subarray(from, from + patchSize), next);
        }
  }
  return patches;
}

/** Patches of one moment with the channels of each pixel side by side, instead of the pixels of each channel. */
export function channelsLast(patches: Float32Array, patchSize: number): Float32Array {
  const [numChannels, numPixels] = [3, patchSize ** 2];
  return patches.map((_, at) => {
    const within = at % (numChannels * numPixels);
    const [pixel, channel] = [Math.floor(within / numChannels), within % numChannels];
    return patches[at - within + channel * numPixels + pixel]!;
  });
}
