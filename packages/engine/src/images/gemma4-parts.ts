import type { Gemma4VisionPart, TensorInfo } from "@octavo/artifacts/checkpoint/checkpoint";
import { readTensor } from "@octavo/artifacts/checkpoint/read-tensor";
import { isFloatType } from "@octavo/artifacts/checkpoint/tensor-storage";
import { convertFloats } from "@octavo/artifacts/program/float-conversion";
import { boundNames, type ClipBounds } from "@octavo/artifacts/vision/gemma4-tower";
import type { StepPlan } from "@octavo/kernels";
import { OctavoError } from "@octavo/protocol/errors";
import { type PatchGrid, patchOrder } from "./patches.js";
import { joined } from "./tower-step.js";

/** What Gemma 4's clipped linears bound. */
export async function readClipBounds({ tensors }: Pick<Gemma4VisionPart, "tensors">): Promise<ClipBounds> {
  const bounds = new Map<string, number>();
  for (const [name, tensor] of tensors) {
    if (!boundNames.some((bound) => name.endsWith(`.${bound}`))) continue;
    const [bound] = await readFloats(name, tensor, 1);
    bounds.set(name, bound ?? 0);
  }
  return bounds;
}

/** What a step of Gemma 4's tower takes beside the layout of its tokens, made from patches and their grid. */
export async function gemma4Inputs({
  config,
  processing,
  tensors,
}: Gemma4VisionPart): Promise<
  (patches: Float32Array, grid: PatchGrid) => Pick<StepPlan, "received" | "axes">
> {
  const { hiddenSize: width, numPositions, poolSize } = config;
  const name = "patch_embedder.position_embedding_table";
  const whole = await readFloats(name, tensors.get(name), 2 * numPositions * width);
  // No image has more in a row.
  const kept = processing.maxTokens * poolSize * width;
  const [columns, rows] = [0, numPositions * width].map((from) => whole.slice(from, from + kept));
  return (patches, grid) => {
    const order = patchOrder(grid, poolSize);
    const axes = new Int32Array(3 * order.length);
    const positions = new Float32Array(order.length * width);
    for (const [patch, position] of order.entries()) {
      const [row, column] = [Math.floor(position / grid.columns), position % grid.columns];
      axes.set([0, row, column], 3 * patch);
      for (let at = 0; at < width; at++)
        positions[patch * width + at] = columns![column * width + at]! + rows![row * width + at]!;
    }
    return { axes, received: joined([patches.map((value) => 2 * (value - 0.5)), positions]) };
  };
}

async function readFloats(
  name: string,
  tensor: TensorInfo | undefined,
  length: number,
): Promise<Float32Array> {
  if (tensor === undefined || !isFloatType(tensor.type))
    throw new OctavoError("artifact_invalid", `The checkpoint has no ${name} in floats.`);
  const values = new Float32Array(convertFloats(await readTensor(tensor), tensor.type, "f32").slice().buffer);
  if (values.length === length) return values;
  throw new OctavoError("artifact_invalid", `${name} has another shape than config.json says.`);
}
