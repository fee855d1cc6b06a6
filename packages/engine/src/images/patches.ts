import type { ImageProcessing } from "@octavo/artifacts/vision/image-processing";
import type { VisionConfig } from "@octavo/artifacts/vision/vision-config";
import { type Raster, resize } from "./resize.js";

/** How an image is cut; see `VisionConfig`. */
export type PatchLayout = Pick<VisionConfig, "patchSize" | "patchesPerSide" | "poolSize">;

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
export function patchPositions({ patchesPerSide, poolSize }: PatchLayout): Int32Array {
  const tokens = patchesPerSide / poolSize;
  const positions = new Int32Array(patchesPerSide ** 2);
  let next = 0;
  for (let token = 0; token < tokens ** 2; token++) {
    const [top, left] = [Math.floor(token / tokens) * poolSize, (token % tokens) * poolSize];
    for (let patch = 0; patch < poolSize ** 2; patch++) {
      const [y, x] = [top + Math.floor(patch / poolSize), left + (patch % poolSize)];
      positions[next++] = y * patchesPerSide + x;
    }
  }
  return positions;
}

/** `[patches, 3 * patchSize * patchSize]` in the order of `patchPositions`, each patch by channels, then rows. */
export function patchesOf(pixels: Float32Array, layout: PatchLayout): Float32Array {
  const { patchSize, patchesPerSide } = layout;
  const side = patchesPerSide * patchSize;
  const numChannels = pixels.length / side ** 2;
  const patches = new Float32Array(pixels.length);
  let next = 0;
  for (const position of patchPositions(layout)) {
    const top = Math.floor(position / patchesPerSide) * patchSize;
    const left = (position % patchesPerSide) * patchSize;
    for (let channel = 0; channel < numChannels; channel++)
      for (let y = top; y < top + patchSize; y++, next += patchSize) {
        const from = channel * side ** 2 + y * side + left;
        patches.set(pixels.subarray(from, from + patchSize), next);
      }
  }
  return patches;
}
