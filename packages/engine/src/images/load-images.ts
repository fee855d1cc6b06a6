import type { Backend } from "@octavo/kernels";
import type {
  Checkpoint,
  Qwen25VisionPart,
  Qwen3VisionPart,
  VisionPart,
} from "@octavo/artifacts/checkpoint/checkpoint";
import { seeing25Config } from "@octavo/artifacts/vision/qwen25-vision";
import { seeingConfig } from "@octavo/artifacts/vision/qwen3-vision";
import { mostShapedTokens } from "@octavo/artifacts/vision/image-processing";
import { OctavoError } from "@octavo/protocol/errors";
import type { ModelConfig } from "@octavo/artifacts/program/model-config";
import type { Tokenizer } from "@octavo/text/tokenizer/tokenizer";
import { mostImageTokens } from "../engine-options.js";
import type { ResolvedLoadOptions } from "../llm/load-options.js";
import { ImageInput } from "./image-input.js";
import { gemma4Reader, type ImageReader, shapedReader, siglipReader } from "./image-reader.js";
import { Qwen25Tower } from "./qwen25-tower.js";
import { Qwen3Tower } from "./qwen3-tower.js";
import { VisionTower } from "./vision-tower.js";

/** How a model takes images, or why it takes none. */
export type Sight = { readonly input: ImageInput; readonly tower: Disposable } | { readonly refusal: string };

/** Why a model that could see does not, under these options; undefined where it does. */
function imageRefusal(
  { container }: Pick<Checkpoint, "container">,
  backend: Pick<Backend, "takesGiven" | "info">,
  options: ResolvedLoadOptions,
): string | undefined {
  const { vision } = container ?? {};
  if (vision === undefined || "refusal" in vision) return vision?.refusal ?? "it reads text only";
  if (options.limitMmPerPrompt === 0) return "images are turned off (--limit-mm-per-prompt)";
  if (options.tensorParallelSize > 1) return "images need a tensor_parallel_size of 1";
  if (options.pipelineParallelSize > 1 || options.pipelineStageAddresses.length > 0)
    return "images need a pipeline_parallel_size of 1";
  if (options.enableSleepMode) return "images are not taken in sleep mode";
  if (backend.takesGiven !== true) return `images are not taken on ${backend.info.name}; on the CPU they are`;
  // Tokens that see no others behind themselves may be of several steps.
  const tokensPerImage = tokensOfStep(vision);
  if (tokensPerImage > mostImageTokens({ ...options, backend }))
    return (
      `an image has ${tokensPerImage} tokens, which one step must hold beside ${options.maxNumSeqs} sequences: ` +
      "raise max_num_batched_tokens or lower max_num_seqs"
    );
  return undefined;
}

/** Tokens of an image that a step computes at once, at most. */
function tokensOfStep(vision: VisionPart): number {
  if (vision.kind === "siglip") return vision.config.tokensPerImage;
  return vision.kind === "gemma4" && vision.config.seesAhead ? vision.processing.maxTokens : 1;
}

/** Tokens of an image that keeps its shape, unless more are asked for: its patches, four times as many, see each other. */
const usualTokens = 1_024;

/** What the model sees with under these options. Throws `invalid_option` for a bound that its images cannot have. */
function boundedVision(
  vision: VisionPart,
  { maxImagePixels: asked }: Pick<ResolvedLoadOptions, "maxImagePixels">,
): VisionPart {
  if (vision.kind === "siglip") {
    if (asked === undefined) return vision;
    const { width, height } = vision.processing;
    throw unfit(`all images of this model are resized to ${width} x ${height}`);
  }
  if (vision.kind === "gemma4") {
    if (asked === undefined) return vision;
    throw unfit(
      `images of this model have up to ${vision.processing.maxTokens} tokens, whatever their pixels`,
    );
  }
  const { multiple, minPixels, maxPixels } = vision.processing;
  const [least, most] = [Math.max(minPixels, multiple ** 2), mostShapedTokens * multiple ** 2];
  if (asked !== undefined && (asked < least || asked > most))
    throw unfit(`images of this model have ${least} to ${most} pixels, not ${asked}`);
  const bound = asked ?? Math.max(least, Math.min(maxPixels, usualTokens * multiple ** 2));
  return { ...vision, processing: { ...vision.processing, maxPixels: bound } };
}

function unfit(reason: string): OctavoError {
  return new OctavoError("invalid_option", `--mm-processor-kwargs: ${reason}.`, {
    param: "max_image_pixels",
  });
}

/** Memory that the vision tower will take. */
export function imageBytes(backend: Backend, checkpoint: Checkpoint, options: ResolvedLoadOptions): number {
  const given = checkpoint.container?.vision;
  if (given === undefined || "refusal" in given) return 0;
  if (imageRefusal(checkpoint, backend, options) !== undefined) return 0;
  const vision = boundedVision(given, options);
  if (vision.kind === "qwen3-vl") return Qwen3Tower.byteLength(checkpoint, vision);
  return vision.kind === "qwen2.5-vl"
    ? Qwen25Tower.byteLength(checkpoint, vision)
    : VisionTower.byteLength(checkpoint, vision);
}

/** The model as it is loaded beside a vision tower, where it takes images. */
export function seeingCheckpoint(
  backend: Backend,
  checkpoint: Checkpoint,
  options: ResolvedLoadOptions,
): Checkpoint {
  const vision = checkpoint.container?.vision;
  if (vision === undefined || "refusal" in vision || !isShaped(vision)) return checkpoint;
  if (imageRefusal(checkpoint, backend, options) !== undefined) return checkpoint;
  return { ...checkpoint, config: seeingDecoder(checkpoint.config, vision) };
}

type ShapedVision = Qwen3VisionPart | Qwen25VisionPart;

export function isShaped(vision: VisionPart): vision is ShapedVision {
  return vision.kind === "qwen3-vl" || vision.kind === "qwen2.5-vl";
}

/** A decoder whose heads rotate by where tokens stand in images. */
export function seeingDecoder(text: ModelConfig, vision: ShapedVision): ModelConfig {
  return vision.kind === "qwen3-vl" ? seeingConfig(text, vision.config) : seeing25Config(text, vision.config);
}

/** The tower of images that keep their shape. */
export function loadShapedTower(
  backend: Backend,
  checkpoint: Checkpoint,
  vision: ShapedVision,
  signal?: AbortSignal,
): Promise<Qwen3Tower | Qwen25Tower> {
  return vision.kind === "qwen3-vl"
    ? Qwen3Tower.load(backend, checkpoint, vision, signal)
    : Qwen25Tower.load(backend, checkpoint, vision, signal);
}

/** Loads the vision tower behind the model's own weights. */
export async function loadImages(
  backend: Backend,
  checkpoint: Checkpoint,
  tokenizer: Tokenizer,
  options: ResolvedLoadOptions,
): Promise<Sight> {
  const refusal = imageRefusal(checkpoint, backend, options);
  const given = checkpoint.container?.vision;
  if (refusal !== undefined || given === undefined || "refusal" in given) return { refusal: refusal ?? "" };
  const vision = boundedVision(given, options);
  const { tower, reader } = await readerOf(backend, checkpoint, vision, options);
  try {
    return { tower, input: new ImageInput(reader, tokenizer, options.limitMmPerPrompt) };
  } catch (error) {
    tower[Symbol.dispose]();
    throw error;
  }
}

async function readerOf(
  backend: Backend,
  checkpoint: Checkpoint,
  vision: VisionPart,
  { signal }: Pick<ResolvedLoadOptions, "signal">,
): Promise<{ readonly tower: Disposable; readonly reader: ImageReader }> {
  if (isShaped(vision)) {
    const tower = await loadShapedTower(backend, checkpoint, vision, signal);
    return { tower, reader: shapedReader(tower, vision) };
  }
  const tower = await VisionTower.load(backend, checkpoint, vision, signal);
  const reader = vision.kind === "siglip" ? siglipReader(tower, vision) : gemma4Reader(tower, vision);
  return { tower, reader };
}
