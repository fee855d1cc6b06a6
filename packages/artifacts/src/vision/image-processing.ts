import { artifactUnsupported } from "@octavo/text/files/artifact-file";
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
