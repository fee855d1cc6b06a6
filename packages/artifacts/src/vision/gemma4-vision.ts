import type { PlainActivation } from "@octavo/kernels";
import { artifactInvalid, artifactUnsupported } from "@octavo/text/files/artifact-file";
import { parseForm } from "@octavo/text/files/bounded-json";
import { z } from "zod";
import { type ImageProcessing, readImageProcessing } from "./image-processing.js";
import { checkTokenIds, idField as id, sizeField as size, visionActivation } from "./vision-fields.js";

/** Gemma 4's tower: images keep their shape and have at most as many tokens as the processor's budget says. */
export interface Gemma4VisionConfig {
  readonly hiddenSize: number;
  readonly intermediateSize: number;
  readonly numLayers: number;
  readonly numHeads: number;
  readonly normEps: number;
  readonly activation: PlainActivation;
  readonly ropeTheta: number;
  readonly patchSize: number;
  /** Neighbouring patches in each direction that become one token. */
  readonly poolSize: number;
  /** Learned positions of columns, and as many of rows. */
  readonly numPositions: number;
  /** Linears bound what they read and what they give. */
  readonly clips: boolean;
  /** Rows are shifted and scaled behind the layers. */
  readonly standardizes: boolean;
  readonly outSize: number;
  /** Tokens of an image see each other, in layers with a window. */
  readonly seesAhead: boolean;
  readonly imageTokenId: number;
  readonly beginTokenId: number;
  readonly endTokenId: number;
  /** What per-layer embeddings take for an image's tokens. */
  readonly padTokenId: number;
}

/** Defaults: transformers' Gemma4Config, Gemma4TextConfig and Gemma4VisionConfig. */
const schema = z.object({
  image_token_id: id.default(258_880),
  boi_token_id: id.default(255_999),
  eoi_token_id: id.default(258_882),
  text_config: z.object({
    pad_token_id: id.nullish(),
    use_bidirectional_attention: z.string().nullish(),
  }),
  vision_config: z.object({
    model_type: z.string().default("gemma4_vision"),
    hidden_size: size.default(768),
    intermediate_size: size.default(3_072),
    num_hidden_layers: size.max(1_024).default(16),
    num_attention_heads: size.default(12),
    num_key_value_heads: size.default(12),
    head_dim: size.default(64),
    hidden_activation: z.string().default("gelu_pytorch_tanh"),
    rms_norm_eps: z.number().positive().default(1e-6),
    attention_bias: z.boolean().nullish(),
    rope_parameters: z
      .object({ rope_type: z.string().nullish(), rope_theta: z.number().positive().nullish() })
      .nullish(),
    pooling_kernel_size: size.max(64).default(3),
    patch_size: size.max(1_024).default(16),
    position_embedding_size: size.default(10_240),
    use_clipped_linears: z.boolean().default(false),
    standardize: z.boolean().default(false),
  }),
});

const activations: Readonly<Record<string, PlainActivation>> = {
  gelu_pytorch_tanh: "gelu_tanh",
  gelu: "gelu",
  silu: "silu",
};

/** @throws OctavoError `artifact_invalid` or `artifact_unsupported` */
export function readGemma4Vision(
  path: string,
  json: unknown,
  text: { readonly hiddenSize: number; readonly vocabSize: number },
): Gemma4VisionConfig {
  const { vision_config: vision, text_config: decoder, ...whole } = parseForm(path, json, schema);
  if (vision.model_type !== "gemma4_vision")
    throw artifactUnsupported(
      path,
      `has a vision_config of the model_type ${JSON.stringify(vision.model_type.slice(0, 100))}`,
    );
  const heads = vision.num_attention_heads;
  if (vision.num_key_value_heads !== heads)
    throw artifactUnsupported(path, `has ${vision.num_key_value_heads} vision kv heads for ${heads} heads`);
  // Half of a head's pairs rotate by the column, half by the row.
  if (vision.head_dim * heads !== vision.hidden_size || vision.head_dim % 4 !== 0)
    throw artifactUnsupported(
      path,
      `has ${heads} vision heads of ${vision.head_dim} over ${vision.hidden_size} columns`,
    );
  if (vision.attention_bias === true) throw artifactUnsupported(path, "has a vision attention_bias");
  const { rope_type: kind, rope_theta: theta } = vision.rope_parameters ?? {};
  if (!["axial", "default"].includes(kind ?? "axial"))
    throw artifactUnsupported(path, `has the vision rope_type ${JSON.stringify(kind?.slice(0, 100))}`);
  const ids = {
    imageTokenId: whole.image_token_id,
    beginTokenId: whole.boi_token_id,
    endTokenId: whole.eoi_token_id,
    padTokenId: decoder.pad_token_id ?? 0,
  };
  checkTokenIds(path, ids, text.vocabSize);
  return {
    hiddenSize: vision.hidden_size,
    intermediateSize: vision.intermediate_size,
    numLayers: vision.num_hidden_layers,
    numHeads: heads,
    normEps: vision.rms_norm_eps,
    activation: visionActivation(path, vision.hidden_activation, activations),
    ropeTheta: theta ?? 100,
    patchSize: vision.patch_size,
    poolSize: vision.pooling_kernel_size,
    numPositions: vision.position_embedding_size,
    clips: vision.use_clipped_linears,
    standardizes: vision.standardize,
    outSize: text.hiddenSize,
    seesAhead: decoder.use_bidirectional_attention === "vision",
    ...ids,
  };
}

/** As `ImageProcessing`, but for images that keep their shape within a budget of tokens. */
export interface BudgetProcessing extends Omit<ImageProcessing, "width" | "height"> {
  /** Width and height become multiples of it: a token's. */
  readonly multiple: number;
  readonly maxTokens: number;
}

const processorSchema = z.looseObject({
  do_normalize: z.boolean().nullish(),
  resample: z.number().int().nullish(),
  image_mean: z.unknown(),
  image_std: z.unknown(),
  patch_size: size.nullish(),
  pooling_kernel_size: size.nullish(),
  max_soft_tokens: size.nullish(),
});

/** transformers' own. */
const budgets: readonly number[] = [70, 140, 280, 560, 1_120];

/**
 * A preprocessor_config.json of Gemma 4.
 * @throws OctavoError `artifact_invalid` or `artifact_unsupported`
 */
export function readBudgetProcessing(
  path: string,
  json: unknown,
  { patchSize, poolSize, numPositions }: Gemma4VisionConfig,
): BudgetProcessing {
  const given = parseForm(path, json, processorSchema);
  const made = [given.patch_size ?? 16, given.pooling_kernel_size ?? 3];
  if (made.join() !== [patchSize, poolSize].join())
    throw artifactInvalid(
      path,
      `makes patches of ${made.join(", ")}, but the vision tower takes ${patchSize}, ${poolSize}`,
    );
  const maxTokens = given.max_soft_tokens ?? 280;
  if (!budgets.includes(maxTokens))
    throw artifactUnsupported(path, `has max_soft_tokens ${maxTokens}; ${budgets.join(", ")} are supported`);
  // The longest image is one token high.
  if (maxTokens * poolSize > numPositions)
    throw artifactInvalid(
      path,
      `makes images of up to ${maxTokens * poolSize} patches in a row, but the vision tower has ${numPositions} positions`,
    );
  const [plainMean, plainDeviation] = [
    [0, 0, 0],
    [1, 1, 1],
  ];
  const normalizes = given.do_normalize === true;
  const {
    width: _,
    height: __,
    ...steps
  } = readImageProcessing(path, {
    ...given,
    do_normalize: true,
    size: { width: 1, height: 1 },
    resample: given.resample ?? 3,
    image_mean: normalizes ? (given.image_mean ?? plainMean) : plainMean,
    image_std: normalizes ? (given.image_std ?? plainDeviation) : plainDeviation,
  });
  return { ...steps, multiple: patchSize * poolSize, maxTokens };
}
