import { OctavoError } from "@octavo/protocol/errors";
import type { VisionPart } from "../checkpoint/checkpoint.js";
import type { ModelConfig } from "../program/model-config.js";
import { type ModelPlan, weightsIn } from "../program/model-plan.js";
import { boundNames, planGemma4Tower } from "./gemma4-tower.js";
import { readGemma4Vision } from "./gemma4-vision.js";
import { planQwen3Mergers, planQwen3Tower } from "./qwen3-vl.js";
import { readQwen25Vision } from "./qwen25-vision.js";
import { planQwen25Layers, planQwen25Merger } from "./qwen25-vl.js";
import { readQwen3Vision } from "./qwen3-vision.js";
import { visionKind } from "./read-vision.js";
import { planSiglip } from "./siglip.js";
import { readGemma3Vision } from "./vision-config.js";

interface Tower {
  readonly plans: () => readonly ModelPlan[];
  /** Learned positions, and bounds, that no op has. */
  readonly otherElements: number;
}

type ReadTower = (path: string, json: unknown, text: ModelConfig) => Tower;

const towers: Readonly<Record<VisionPart["kind"], ReadTower>> = {
  siglip(path, json, text) {
    const vision = readGemma3Vision(path, json, text);
    return { plans: () => [planSiglip(vision, text, undefined)], otherElements: 0 };
  },
  gemma4(path, json, text) {
    const vision = readGemma4Vision(path, json, text);
    const { numPositions, hiddenSize, numLayers, clips, poolSize } = vision;
    const linearsOfLayer = 7;
    const numBounds = clips ? linearsOfLayer * numLayers * boundNames.length : 0;
    return {
      plans: () => [planGemma4Tower(vision, text, undefined, poolSize ** 2)],
      otherElements: 2 * numPositions * hiddenSize + numBounds,
    };
  },
  "qwen2.5-vl"(path, json, text) {
    const vision = readQwen25Vision(path, json, text);
    const maxPatches = (vision.patchSize * vision.poolSize) ** 2;
    const layers = { first: 0, end: vision.numLayers };
    return {
      plans: () => [
        planQwen25Layers(vision, text, undefined, maxPatches, layers),
        planQwen25Merger(vision, text, undefined, maxPatches),
      ],
      otherElements: 0,
    };
  },
  "qwen3-vl"(path, json, text) {
    const vision = readQwen3Vision(path, json, text);
    const { patchSize, poolSize, positionsPerSide, hiddenSize } = vision;
    const maxPatches = (patchSize * poolSize) ** 2;
    return {
      plans: () =>
        [planQwen3Tower, planQwen3Mergers].map((plan) => plan(vision, text, undefined, maxPatches)),
      otherElements: positionsPerSide ** 2 * hiddenSize,
    };
  },
};

/** Elements of the vision tower that a container's config.json describes; 0 where its images are not read. */
export function towerElements(path: string, container: string, json: unknown, text: ModelConfig): number {
  const tower = readTower(path, container, json, text);
  const weights = new Set(weightsIn(tower?.plans().map(({ ops }) => ops)));
  const shapes = [...weights].flatMap(({ sources }) => sources.map(({ shape }) => shape));
  return shapes.reduce(
    (sum, shape) => sum + shape.reduce((product, size) => product * size, 1),
    tower?.otherElements ?? 0,
  );
}

/** Undefined for what is served as a model of text. */
function readTower(path: string, container: string, json: unknown, text: ModelConfig): Tower | undefined {
  const kind = visionKind(container);
  if (kind === undefined) return undefined;
  try {
    return towers[kind](path, json, text);
  } catch (error) {
    if (error instanceof OctavoError && error.code.startsWith("artifact_")) return undefined;
    throw error;
  }
}
