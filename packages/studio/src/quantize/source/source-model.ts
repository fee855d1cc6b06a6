import { artifactInvalid, artifactUnsupported } from "@octavo/text/files/artifact-file";
import { convertFloats } from "@octavo/artifacts/program/float-conversion";
import { isFloatType } from "@octavo/artifacts/checkpoint/tensor-storage";
import { type MatrixPlan, type ModelPlan, weightsIn } from "@octavo/artifacts/program/model-plan";
import { modelFamily, planModel } from "@octavo/artifacts/program/registry";
import { readTensor } from "@octavo/artifacts/checkpoint/read-tensor";
import type { Checkpoint, TensorInfo } from "@octavo/engine";

/** Tensors converted and written together: what comes before the layers, each layer, what comes after. */
export interface SourceUnit {
  readonly name: string;
  readonly layer: number | undefined;
  readonly tensors: readonly TensorInfo[];
}

/** An unquantised checkpoint, cut into units. */
export interface SourceModel {
  readonly checkpoint: Checkpoint;
  readonly plan: ModelPlan;
  readonly units: readonly SourceUnit[];
  /** Names of the tensors that multiply activations and may be quantised, the output head included. */
  readonly linears: ReadonlySet<string>;
  /** Names of the matrices that choose experts. */
  readonly routers: ReadonlySet<string>;
}

/** @throws OctavoError `artifact_unsupported` for a checkpoint that is quantised already or no safetensors folder */
export function openSource(checkpoint: Checkpoint): SourceModel {
  const { path, format, config, tensors } = checkpoint;
  if (format !== "safetensors") {
    throw artifactUnsupported(path, "is a GGUF file; quantise from the model's unquantised safetensors");
  }
  for (const tensor of tensors.values()) {
    if (isFloatType(tensor.type) && tensor.recipe === undefined) continue;
    throw artifactUnsupported(
      path,
      `is quantised already (tensor ${JSON.stringify(tensor.name)}); quantise from the original weights`,
    );
  }
  const plan = planModel(config, tensors);
  return { checkpoint, plan, units: cutIntoUnits(tensors), ...matrixNames(plan, checkpoint) };
}

/** The module that a weight belongs to: its name without `.weight`. */
export function moduleOf(tensorName: string): string {
  return tensorName.replace(/\.weight$/, "");
}

export function layerOf(tensorName: string): number | undefined {
  const match = /^model\.layers\.(\d+)\./.exec(tensorName);
  return match === null ? undefined : Number(match[1]);
}

/**
 * A tensor's values in single precision.
 * @throws OctavoError `artifact_invalid` for values that are not finite
 */
export function readTensorFloats(tensor: TensorInfo): Promise<Float32Array> {
  return readTensorRows(tensor, 0, tensor.shape[0] ?? 1);
}

/** `count` rows of a tensor from `first` on, so that a large one need not be in memory as a whole. */
export async function readTensorRows(
  tensor: TensorInfo,
  first: number,
  count: number,
): Promise<Float32Array> {
  const [numRows = 1] = tensor.shape;
  const rowBytes = numRows === 0 ? 0 : tensor.byteLength / numRows;
  const range = { offset: tensor.offset + first * rowBytes, byteLength: count * rowBytes };
  const { name, path } = tensor;
  const single = convertFloats(await readTensor({ name, path, ...range }), floatType(tensor), "f32");
  const values = new Float32Array(single.buffer, single.byteOffset, single.byteLength / 4);
  let at = 0;
  while (at < values.length && Number.isFinite(values[at])) at++;
  if (at === values.length) return values;
  const element = (values.length / count) * first + at;
  throw artifactInvalid(path, `tensor ${JSON.stringify(name)} holds ${values[at]} at element ${element}`);
}

export function floatType(tensor: TensorInfo): "f32" | "f16" | "bf16" {
  if (isFloatType(tensor.type)) return tensor.type;
  throw artifactUnsupported(tensor.path, `tensor ${JSON.stringify(tensor.name)} is ${tensor.type}`);
}

function cutIntoUnits(tensors: ReadonlyMap<string, TensorInfo>): SourceUnit[] {
  const before: TensorInfo[] = [];
  const after: TensorInfo[] = [];
  const layers = new Map<number, TensorInfo[]>();
  for (const tensor of tensors.values()) {
    const layer = layerOf(tensor.name);
    if (layer === undefined) (tensor.name.startsWith("model.embed_tokens.") ? before : after).push(tensor);
    else {
      const known = layers.get(layer) ?? [];
      known.push(tensor);
      layers.set(layer, known);
    }
  }
  const byNumber = [...layers].toSorted(([a], [b]) => a - b);
  return [
    { name: "embeddings", layer: undefined, tensors: before },
    ...byNumber.map(([layer, own]) => ({ name: `layer ${layer}`, layer, tensors: own })),
    { name: "head", layer: undefined, tensors: after },
  ].filter((unit) => unit.tensors.length > 0);
}

function matrixNames(
  plan: ModelPlan,
  { config, tensors }: Checkpoint,
): Pick<SourceModel, "linears" | "routers"> {
  const { expertNames } = modelFamily(config.architecture);
  // Routers decide by small differences; no tool quantises them.
  const kept = expertNames ? [expertNames.router, expertNames.shared?.gate ?? expertNames.router] : [];
  const linears = new Set<string>();
  const routers = new Set<string>();
  const add = (matrix: MatrixPlan): void => {
    for (const { name } of matrix.sources) {
      // No format quantises experts that are stacked in one tensor.
      if (tensors.get(name)?.shape.length !== 2) continue;
      (kept.some((module) => name.endsWith(`.${module}.weight`)) ? routers : linears).add(name);
    }
  };
  const embeddings = new Set<MatrixPlan>();
  for (const op of plan.ops) {
    if (op.op === "embedding") embeddings.add(op.weight);
    else for (const weight of weightsIn(op)) if (weight.kind === "matrix") add(weight);
  }
  if (plan.head !== undefined && !embeddings.has(plan.head.weight)) add(plan.head.weight);
  return { linears, routers };
}
