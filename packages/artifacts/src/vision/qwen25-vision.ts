import { artifactInvalid } from "@octavo/text/files/artifact-file";
import { parseForm } from "@octavo/text/files/bounded-json";
import { z } from "zod";
import type { ModelConfig } from "../program/model-config.js";
import type { Qwen3VisionConfig } from "./qwen3-vision.js";
import {
  checkChannels,
  checkTokenIds,
  idField as id,
  sizeField as size,
  visionActivation,
} from "./vision-fields.js";

/** Qwen2.5-VL's tower (arXiv 2502.13923): no learned positions, and most layers see within windows. */
export interface Qwen25VisionConfig extends Omit<
  Qwen3VisionConfig,
  "activation" | "positionsPerSide" | "tappedLayers"
> {
  /** Tokens in each direction of a window. */
  readonly windowSize: number;
  /** Layers whose patches see the whole image, ascending. */
  readonly wholeLayers: readonly number[];
}

const sections = z.looseObject({ mrope_section: z.array(id).length(3).nullish() }).nullish();
const ropeFields = { rope_parameters: sections, rope_scaling: sections };

/** Defaults: transformers' Qwen2_5_VLConfig and Qwen2_5_VLVisionConfig; published files have other names for some. */
const schema = z.object({
  image_token_id: id.default(151_655),
  vision_start_token_id: id.default(151_652),
  vision_end_token_id: id.default(151_653),
  ...ropeFields,
  text_config: z.object(ropeFields).nullish(),
  vision_config: z.object({
    depth: size.max(1_024).default(32),
    hidden_size: size.default(3_584),
    hidden_act: z.string().default("silu"),
    intermediate_size: size.default(3_420),
    num_heads: size.default(16),
    in_channels: size.nullish(),
    in_chans: size.nullish(),
    patch_size: size.default(14),
    spatial_merge_size: size.default(2),
    temporal_patch_size: size.default(2),
    window_size: size.default(112),
    out_hidden_size: size.default(3_584),
    fullatt_block_indexes: z.array(id).max(1_024).default([7, 15, 23, 31]),
  }),
});

/** @throws OctavoError `artifact_invalid` or `artifact_unsupported` */
export function readQwen25Vision(
  path: string,
  json: unknown,
  text: Pick<ModelConfig, "hiddenSize" | "vocabSize" | "rope">,
): Qwen25VisionConfig {
  const whole = parseForm(path, json, schema);
  const { vision_config: vision, text_config: own = whole } = whole;
  visionActivation(path, vision.hidden_act, { silu: true });
  checkChannels(path, vision.in_channels ?? vision.in_chans ?? 3);
  // Half of a head's pairs rotate by the row, half by the column.
  if (vision.hidden_size % (4 * vision.num_heads) !== 0)
    throw artifactInvalid(path, `has ${vision.num_heads} vision heads over ${vision.hidden_size} columns`);
  if (vision.out_hidden_size !== text.hiddenSize)
    throw artifactInvalid(path, `sees ${vision.out_hidden_size} columns and reads ${text.hiddenSize}`);
  const windowSize = Math.floor(
    Math.floor(vision.window_size / vision.spatial_merge_size) / vision.patch_size,
  );
  if (windowSize < 1) throw artifactInvalid(path, `has vision windows of ${vision.window_size} pixels`);
  const ropeSections = (
    own?.rope_parameters ??
    own?.rope_scaling ??
    whole.rope_parameters ??
    whole.rope_scaling
  )?.mrope_section ?? [16, 24, 24];
  const pairs = ropeSections.reduce((sum, count) => sum + count, 0);
  if (pairs !== text.rope.rotaryDim / 2)
    throw artifactInvalid(path, `has an mrope_section of ${pairs} pairs over ${text.rope.rotaryDim / 2}`);
  const ids = {
    imageTokenId: whole.image_token_id,
    beginTokenId: whole.vision_start_token_id,
    endTokenId: whole.vision_end_token_id,
  };
  checkTokenIds(path, ids, text.vocabSize);
  return {
    hiddenSize: vision.hidden_size,
    intermediateSize: vision.intermediate_size,
    numLayers: vision.depth,
    numHeads: vision.num_heads,
    patchSize: vision.patch_size,
    moments: vision.temporal_patch_size,
    poolSize: vision.spatial_merge_size,
    windowSize,
    wholeLayers: vision.fullatt_block_indexes
      .filter((layer) => layer < vision.depth)
      .toSorted((a, b) => a - b),
    outSize: vision.out_hidden_size,
    ropeSections,
    ...ids,
  };
}

/** The decoder of a model that sees: its first pairs rotate by time, then some by rows, then some by columns. */
export function seeing25Config(text: ModelConfig, { ropeSections }: Qwen25VisionConfig): ModelConfig {
  const axes = Uint8Array.from(ropeSections.flatMap((count, axis) => Array<number>(count).fill(axis)));
  return { ...text, rope: { ...text.rope, axes } };
}

/** Neighbouring layers whose patches see the same: from the first to before the end. */
export function layerSpans({ numLayers, wholeLayers }: Qwen25VisionConfig): readonly {
  readonly first: number;
  readonly end: number;
  readonly seesWhole: boolean;
}[] {
  const spans: { first: number; end: number; seesWhole: boolean }[] = [];
  for (let layer = 0; layer < numLayers; layer++) {
    const seesWhole = wholeLayers.includes(layer);
    const last = spans.at(-1);
    if (last?.seesWhole === seesWhole) last.end = layer + 1;
    else spans.push({ first: layer, end: layer + 1, seesWhole });
  }
  return spans;
}
