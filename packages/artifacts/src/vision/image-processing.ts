import { artifactInvalid, artifactUnsupported } from "@octavo/text/files/artifact-file";
import { parseForm } from "@octavo/text/files/bounded-json";
import { z } from "zod";

/** What becomes of a decoded image, as transformers' image processors do it: resized, rescaled, normalised. */
export interface ImageProcessing {
  readonly width: number;
  readonly height: number;
  readonly resample: "bilinear" | "bicubic";
  /** value = (byte * scale - mean) / deviation, by channel. */
  readonly scale: number;
  readonly mean: readonly number[];
  readonly deviation: readonly number[];
}

const channels = z.array(z.number()).length(3);
const side = z.number().int().min(1).max(8_192);

const schema = z.object({
  do_resize: z.boolean().nullish(),
  size: z.object({ height: side, width: side }),
  resample: z.number().int().nullish(),
  do_rescale: z.boolean().nullish(),
  rescale_factor: z.number().positive().nullish(),
  do_normalize: z.boolean().nullish(),
  image_mean: channels.nullish(),
  image_std: channels.nullish(),
  do_pan_and_scan: z.boolean().nullish(),
});

/** As `ImageProcessing`, but for images that keep their shape. */
export interface ShapedProcessing extends Omit<ImageProcessing, "width" | "height"> {
  /** Width and height become multiples of it. */
  readonly multiple: number;
  readonly minPixels: number;
  readonly maxPixels: number;
}

const pixels = z
  .number()
  .int()
  .min(1)
  .max(2 ** 40);
const shapedSchema = schema.extend({
  size: z.object({ shortest_edge: pixels, longest_edge: pixels }).nullish(),
  min_pixels: pixels.nullish(),
  max_pixels: pixels.nullish(),
  patch_size: z.number().int().nullish(),
  merge_size: z.number().int().nullish(),
  temporal_patch_size: z.number().int().nullish(),
});

/**
 * A preprocessor_config.json of Qwen2-VL and its successors.
 * @throws OctavoError `artifact_invalid` or `artifact_unsupported`
 */
export function readShapedProcessing(
  path: string,
  json: unknown,
  tower: { readonly patchSize: number; readonly poolSize: number; readonly moments: number },
): ShapedProcessing {
  const { size, min_pixels: least, max_pixels: most, ...given } = parseForm(path, json, shapedSchema);
  const made = [given.patch_size ?? 14, given.merge_size ?? 2, given.temporal_patch_size ?? 2];
  const wanted = [tower.patchSize, tower.poolSize, tower.moments];
  if (made.join() !== wanted.join())
    throw artifactInvalid(
      path,
      `makes patches of ${made.join(", ")}, but the vision tower takes ${wanted.join(", ")}`,
    );
  const multiple = tower.patchSize * tower.poolSize;
  const square = { width: 1, height: 1 };
  const {
    width: _,
    height: __,
    ...steps
  } = readImageProcessing(path, {
    ...given,
    size: square,
    resample: given.resample ?? 3,
    image_mean: given.image_mean ?? clip.mean,
    image_std: given.image_std ?? clip.deviation,
  });
  const minPixels = least ?? size?.shortest_edge ?? 56 * 56;
  const maxPixels = Math.min(most ?? size?.longest_edge ?? 28 * 28 * 1280, mostShapedTokens * multiple ** 2);
  if (minPixels > maxPixels || maxPixels < multiple ** 2)
    throw artifactUnsupported(path, `makes images of ${minPixels} to ${maxPixels} pixels`);
  return { ...steps, multiple, minPixels, maxPixels };
}

/** Of an image, whatever the file says; as many as Qwen's own bound. */
export const mostShapedTokens = 16_384;

/** OpenAI's CLIP. */
const clip = {
  mean: [0.48145466, 0.4578275, 0.40821073],
  deviation: [0.26862954, 0.26130258, 0.27577711],
};

/** PIL's numbers. */
const filters: Readonly<Record<number, ImageProcessing["resample"]>> = { 2: "bilinear", 3: "bicubic" };

/**
 * A preprocessor_config.json of Gemma 3.
 * @throws OctavoError `artifact_invalid` or `artifact_unsupported`
 */
export function readImageProcessing(path: string, json: unknown): ImageProcessing {
  const given = parseForm(path, json, schema);
  for (const step of ["do_resize", "do_rescale", "do_normalize"] as const)
    if (given[step] === false) throw artifactUnsupported(path, `has ${step} false`);
  if (given.do_pan_and_scan === true) throw artifactUnsupported(path, "has do_pan_and_scan true");
  const resample = filters[given.resample ?? 2];
  if (resample === undefined)
    throw artifactUnsupported(path, `has resample ${given.resample}; 2 and 3 are supported`);
  const half = [0.5, 0.5, 0.5];
  return {
    ...given.size,
    resample,
    scale: given.rescale_factor ?? 1 / 255,
    mean: given.image_mean ?? half,
    deviation: given.image_std ?? half,
  };
}
