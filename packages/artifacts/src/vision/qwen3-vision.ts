import type { PlainActivation } from "@octavo/kernels";
import { artifactInvalid } from "@octavo/text/files/artifact-file";
import { parseForm } from "@octavo/text/files/bounded-json";
import { z } from "zod";
import type { ModelConfig } from "../program/model-config.js";
import {
  checkChannels,
  checkTokenIds,
  idField as id,
  sizeField as size,
  visionActivation,
} from "./vision-fields.js";

/** Qwen3-VL's and Qwen3.5's tower: images keep their shape, so that each has as many tokens as it needs. */
export interface Qwen3VisionConfig {
  readonly hiddenSize: number;
  readonly intermediateSize: number;
  readonly numLayers: number;
  readonly numHeads: number;
  readonly activation: PlainActivation;
  readonly patchSize: number;
  /** Moments that a patch spans, of which an image has one. */
  readonly moments: number;
  /** Neighbouring patches in each direction that become one token. */
  readonly poolSize: number;
  /** Learned positions in each direction, between which those of an image's patches lie. */
  readonly positionsPerSide: number;
  /** Layers whose output goes, merged, to the decoder's first layers, in this order (DeepStack, arXiv 2406.04334). */
  readonly tappedLayers: readonly number[];
  readonly outSize: number;
  /** Pairs of the decoder's heads that rotate by time, row and column, one of each in turn until one's are used up. */
  readonly ropeSections: readonly number[];
  readonly imageTokenId: number;
  readonly beginTokenId: number;
  readonly endTokenId: number;
}

/** What transformers takes for granted of the models with this tower. */
interface Qwen3Form {
  readonly imageTokenId: number;
  readonly beginTokenId: number;
  readonly endTokenId: number;
  readonly ropeSections: readonly number[];
  /** Whether inner layers go to the decoder too; fields that name them are not read otherwise. */
  readonly isTapped: boolean;
}

const qwen3VlForm: Qwen3Form = {
  imageTokenId: 151_655,
  beginTokenId: 151_652,
  endTokenId: 151_653,
  ropeSections: [24, 20, 20],
  isTapped: true,
};

const qwen35Form: Qwen3Form = {
  imageTokenId: 248_056,
  beginTokenId: 248_053,
  endTokenId: 248_054,
  ropeSections: [11, 11, 10],
  isTapped: false,
};

/** By config.json's name of the whole. */
const forms: Readonly<Record<string, Qwen3Form>> = {
  Qwen3VLForConditionalGeneration: qwen3VlForm,
  Qwen3VLMoeForConditionalGeneration: qwen3VlForm,
  Qwen3_5ForConditionalGeneration: qwen35Form,
  Qwen3_5MoeForConditionalGeneration: qwen35Form,
};

export const qwen3Containers: readonly string[] = Object.keys(forms);

const sections = z.looseObject({
  mrope_section: z.array(id).length(3).nullish(),
  mrope_interleaved: z.boolean().nullish(),
});

/** Defaults: transformers' Qwen3VLVisionConfig, those of Qwen3.5 are the same. */
const schema = z.object({
  architectures: z.tuple([z.enum(qwen3Containers)]).rest(z.unknown()),
  image_token_id: id.optional(),
  vision_start_token_id: id.optional(),
  vision_end_token_id: id.optional(),
  text_config: z.object({
    rope_parameters: sections.nullish(),
    rope_scaling: sections.nullish(),
  }),
  vision_config: z.object({
    depth: size.max(1_024).default(27),
    hidden_size: size.default(1_152),
    hidden_act: z.string().default("gelu_pytorch_tanh"),
    intermediate_size: size.default(4_304),
    num_heads: size.default(16),
    in_channels: size.default(3),
    patch_size: size.default(16),
    spatial_merge_size: size.default(2),
    temporal_patch_size: size.default(2),
    out_hidden_size: size.default(3_584),
    num_position_embeddings: size.default(2_304),
    deepstack_visual_indexes: z.array(z.number().int().min(0)).max(64).default([8, 16, 24]),
  }),
});

const activations: Readonly<Record<string, PlainActivation>> = {
  gelu_pytorch_tanh: "gelu_tanh",
  gelu: "gelu",
  silu: "silu",
};

/** @throws OctavoError `artifact_invalid` or `artifact_unsupported` */
export function readQwen3Vision(
  path: string,
  json: unknown,
  text: { readonly hiddenSize: number; readonly vocabSize: number; readonly numLayers: number },
): Qwen3VisionConfig {
  const whole = parseForm(path, json, schema);
  const { vision_config: vision } = whole;
  const [container] = whole.architectures;
  const form = forms[container] ?? qwen3VlForm;
  const activation = visionActivation(path, vision.hidden_act, activations);
  checkChannels(path, vision.in_channels);
  // Half of a head's pairs rotate by the row, half by the column.
  if (vision.hidden_size % (4 * vision.num_heads) !== 0)
    throw artifactInvalid(path, `has ${vision.num_heads} vision heads over ${vision.hidden_size} columns`);
  if (vision.out_hidden_size !== text.hiddenSize)
    throw artifactInvalid(path, `sees ${vision.out_hidden_size} columns and reads ${text.hiddenSize}`);
  const positionsPerSide = Math.sqrt(vision.num_position_embeddings);
  if (!Number.isInteger(positionsPerSide))
    throw artifactInvalid(path, `has ${vision.num_position_embeddings} positions, which are no square`);
  const tapped = form.isTapped ? vision.deepstack_visual_indexes : [];
  if (
    tapped.length > text.numLayers ||
    tapped.some((layer, at) => layer >= vision.depth || layer <= (tapped[at - 1] ?? -1))
  )
    throw artifactInvalid(path, `taps the vision layers ${tapped.join(", ")} of ${vision.depth}`);
  const ids = {
    imageTokenId: whole.image_token_id ?? form.imageTokenId,
    beginTokenId: whole.vision_start_token_id ?? form.beginTokenId,
    endTokenId: whole.vision_end_token_id ?? form.endTokenId,
  };
  checkTokenIds(path, ids, text.vocabSize);
  return {
    hiddenSize: vision.hidden_size,
    intermediateSize: vision.intermediate_size,
    numLayers: vision.depth,
    numHeads: vision.num_heads,
    activation,
    patchSize: vision.patch_size,
    moments: vision.temporal_patch_size,
    poolSize: vision.spatial_merge_size,
    positionsPerSide,
    tappedLayers: tapped,
    outSize: vision.out_hidden_size,
    ropeSections:
      (whole.text_config.rope_parameters ?? whole.text_config.rope_scaling)?.mrope_section ??
      form.ropeSections,
    ...ids,
  };
}

/** The decoder of a model that sees: the same, but for where tokens stand in images and what these add to its first layers. */
export function seeingConfig(text: ModelConfig, vision: Qwen3VisionConfig): ModelConfig {
  const [, rows = 0, columns = 0] = vision.ropeSections;
  const axes = Uint8Array.from({ length: text.rope.rotaryDim / 2 }, (_, pair) => {
    if (pair % 3 === 1 && pair < 3 * rows) return 1;
    return pair % 3 === 2 && pair < 3 * columns ? 2 : 0;
  });
  return { ...text, rope: { ...text.rope, axes }, numTappedLayers: vision.tappedLayers.length };
}
