import { artifactInvalid, artifactUnsupported } from "@octavo/text/files/artifact-file";
import { parseForm } from "@octavo/text/files/bounded-json";
import { z } from "zod";
import type { ImageProcessing } from "./image-processing.js";
import {
  checkChannels,
  checkTokenIds,
  idField as id,
  sizeField as size,
  visionActivation,
} from "./vision-fields.js";

/** The part of a model that makes rows of the decoder's stream from images. */
export interface VisionConfig {
  readonly hiddenSize: number;
  readonly intermediateSize: number;
  readonly numLayers: number;
  readonly numHeads: number;
  readonly normEps: number;
  readonly activation: "gelu_tanh" | "gelu";
  readonly numChannels: 3;
  readonly patchSize: number;
  /** Patches of an image in each direction. */
  readonly patchesPerSide: number;
  /** Neighbouring patches in each direction that become one token. */
  readonly poolSize: number;
  /** Width of the decoder's stream. */
  readonly outSize: number;
  /** Tokens that an image becomes. */
  readonly tokensPerImage: number;
  /** Ids of the token that stands for each of these, and of those before and behind them. */
  readonly imageTokenId: number;
  readonly beginTokenId: number;
  readonly endTokenId: number;
}

/** Defaults: transformers' Gemma3Config and SiglipVisionConfig. */
const gemma3Schema = z.object({
  mm_tokens_per_image: size.default(256),
  image_token_index: id.optional(),
  image_token_id: id.optional(),
  boi_token_index: id.default(255_999),
  eoi_token_index: id.default(256_000),
  vision_config: z.object({
    model_type: z.string().default("siglip_vision_model"),
    hidden_size: size.default(768),
    intermediate_size: size.default(3_072),
    num_hidden_layers: size.max(1_024).default(12),
    num_attention_heads: size.default(12),
    num_channels: size.default(3),
    image_size: size.default(224),
    patch_size: size.default(16),
    hidden_act: z.string().default("gelu_pytorch_tanh"),
    layer_norm_eps: z.number().positive().default(1e-6),
  }),
});

const activations: Readonly<Record<string, VisionConfig["activation"]>> = {
  gelu_pytorch_tanh: "gelu_tanh",
  gelu: "gelu",
};

/**
 * Gemma 3's: SigLIP (arXiv 2303.15343), whose patches are averaged in squares, normalised and projected.
 * @throws OctavoError `artifact_invalid` or `artifact_unsupported`
 */
export function readGemma3Vision(
  path: string,
  json: unknown,
  text: { readonly hiddenSize: number; readonly vocabSize: number },
): VisionConfig {
  const whole = parseForm(path, json, gemma3Schema);
  const { vision_config: vision } = whole;
  if (!["siglip_vision_model", "siglip"].includes(vision.model_type))
    throw artifactUnsupported(
      path,
      `has a vision_config of the model_type ${JSON.stringify(vision.model_type.slice(0, 100))}`,
    );
  const activation = visionActivation(path, vision.hidden_act, activations);
  checkChannels(path, vision.num_channels);
  if (vision.hidden_size % (2 * vision.num_attention_heads) !== 0)
    throw artifactInvalid(
      path,
      `has ${vision.num_attention_heads} vision heads over ${vision.hidden_size} columns`,
    );
  const patchesPerSide = Math.floor(vision.image_size / vision.patch_size);
  const tokensPerSide = Math.sqrt(whole.mm_tokens_per_image);
  const poolSize = patchesPerSide / tokensPerSide;
  if (patchesPerSide * vision.patch_size !== vision.image_size || !Number.isInteger(poolSize))
    throw artifactUnsupported(
      path,
      `makes ${whole.mm_tokens_per_image} tokens of an image of ${vision.image_size} pixels in patches of ${vision.patch_size}`,
    );
  const ids = {
    imageTokenId: whole.image_token_index ?? whole.image_token_id ?? 262_144,
    beginTokenId: whole.boi_token_index,
    endTokenId: whole.eoi_token_index,
  };
  checkTokenIds(path, ids, text.vocabSize);
  return {
    hiddenSize: vision.hidden_size,
    intermediateSize: vision.intermediate_size,
    numLayers: vision.num_hidden_layers,
    numHeads: vision.num_attention_heads,
    normEps: vision.layer_norm_eps,
    activation,
    numChannels: 3,
    patchSize: vision.patch_size,
    patchesPerSide,
    poolSize,
    outSize: text.hiddenSize,
    tokensPerImage: whole.mm_tokens_per_image,
    ...ids,
  };
}

/** Pixels of an image in each direction, as the tower takes it. */
export function imageSizeOf({ patchesPerSide, patchSize }: VisionConfig): number {
  return patchesPerSide * patchSize;
}

/** Refuses a processor that makes images of another size. */
export function checkProcessing(
  path: string,
  config: VisionConfig,
  { width, height }: ImageProcessing,
): void {
  const wanted = imageSizeOf(config);
  if (width === wanted && height === wanted) return;
  throw artifactInvalid(
    path,
    `makes images of ${width} x ${height}, but the vision tower takes ${wanted} x ${wanted}`,
  );
}
