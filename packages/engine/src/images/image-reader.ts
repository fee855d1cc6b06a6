import type {
  Gemma4VisionPart,
  Qwen25VisionPart,
  Qwen3VisionPart,
  SiglipPart,
} from "@octavo/artifacts/checkpoint/checkpoint";
import type { PromptImage } from "../scheduler/prompt-image.js";
import { decodedSizeOf } from "./decode-image.js";
import { budgetSize, type PatchGrid, shapedSize } from "./patches.js";
import { prepareImage } from "./prepare-image.js";
import type { SeenPatches } from "./tower-step.js";
import type { VisionTower } from "./vision-tower.js";

/** What stands for an image in the decoder's stream. */
export type SeenImage = Pick<PromptImage, "numTokens" | "rows" | "grid" | "added" | "isCausal" | "otherId">;

/** What makes rows of images, and how a kind of model lays them out. */
export interface ImageReader {
  readonly imageTokenId: number;
  readonly beginTokenId: number;
  readonly endTokenId: number;
  /** Of these, what the chat template writes for an image, and what stands in its place, given as many image tokens. */
  readonly layout: (texts: Readonly<Record<"begin" | "image" | "end", string>>) => ImageLayout;
  /** How many tokens an image will have. Throws `invalid_request` for what is no image. */
  tokensOf(bytes: Uint8Array): number | Promise<number>;
  read(bytes: Uint8Array): Promise<SeenImage>;
}

interface ImageLayout {
  /** What the template writes. */
  readonly mark: string;
  /** What a text without a template's parts has for an image; holds the mark. */
  readonly placeholder: string;
  expanded(numTokens: number): string;
}

/** Gemma 3's: every image has as many tokens, between line breaks. */
export function siglipReader(
  tower: Pick<VisionTower, "rows">,
  { config, processing }: Pick<SiglipPart, "config" | "processing">,
): ImageReader {
  const { tokensPerImage: numTokens, imageTokenId, beginTokenId, endTokenId } = config;
  return {
    imageTokenId,
    beginTokenId,
    endTokenId,
    layout: ({ begin, image, end }) => ({
      mark: begin,
      placeholder: begin,
      expanded: (count) => `\n\n${begin}${image.repeat(count)}${end}\n\n`,
    }),
    tokensOf: () => numTokens,
    read: async (bytes) => {
      const { patches, grid } = await prepareImage({ bytes, square: { processing, layout: config } });
      return { numTokens, rows: await tower.rows(patches, grid) };
    },
  };
}

/** Gemma 4's: as many tokens as fit the image's shape and the budget, in the place of the template's one. */
export function gemma4Reader(
  tower: Pick<VisionTower, "rows">,
  { config, processing }: Pick<Gemma4VisionPart, "config" | "processing">,
): ImageReader {
  const { imageTokenId, beginTokenId, endTokenId, padTokenId, poolSize, seesAhead } = config;
  return {
    imageTokenId,
    beginTokenId,
    endTokenId,
    layout: ({ begin, image, end }) => ({
      mark: image,
      placeholder: image,
      expanded: (count) => `${begin}${image.repeat(count)}${end}`,
    }),
    tokensOf: async (bytes) => {
      const { width, height } = budgetSize(await decodedSizeOf(bytes), processing);
      return (width * height) / processing.multiple ** 2;
    },
    read: async (bytes) => {
      const { patches, grid } = await prepareImage({ bytes, budgeted: { processing, layout: config } });
      const rows = await tower.rows(patches, grid);
      const numTokens = (grid.rows * grid.columns) / poolSize ** 2;
      return { numTokens, rows, otherId: padTokenId, ...(!seesAhead && { isCausal: true }) };
    },
  };
}

/** Qwen's: as many tokens as the image's shape takes, where the template put one. */
export function shapedReader(
  tower: { see(patches: Float32Array, grid: PatchGrid): Promise<SeenPatches> },
  {
    config,
    processing,
  }: Pick<Qwen3VisionPart, "processing"> & {
    readonly config: Qwen3VisionPart["config"] | Qwen25VisionPart["config"];
  },
): ImageReader {
  const { imageTokenId, beginTokenId, endTokenId } = config;
  return {
    imageTokenId,
    beginTokenId,
    endTokenId,
    layout: ({ begin, image, end }) => ({
      mark: image,
      placeholder: `${begin}${image}${end}`,
      expanded: (count) => image.repeat(count),
    }),
    tokensOf: async (bytes) => {
      const { width, height } = shapedSize(await decodedSizeOf(bytes), processing);
      return (width * height) / processing.multiple ** 2;
    },
    read: async (bytes) => {
      const { patches, grid } = await prepareImage({ bytes, shaped: { processing, layout: config } });
      const seen = await tower.see(patches, grid);
      return { ...seen, numTokens: seen.grid.rows * seen.grid.columns };
    },
  };
}
