import { artifactUnsupported } from "@octavo/text/files/artifact-file";
import { sliceName } from "@octavo/artifacts/checkpoint/tensor-slices";
import { ggufPlace, type LayerNames } from "@octavo/artifacts/gguf/names";
import type { ExpertNames } from "@octavo/artifacts/program/mixture-of-experts";
import { modelFamily } from "@octavo/artifacts/program/registry";
import type { TensorInfo } from "@octavo/engine";
import { moduleOf, type SourceModel, type SourceUnit } from "../source/source-model.js";

/** Rows of a stored tensor, seen as a matrix of as many columns as its last dimension has; a vector is a column. */
export interface RowRange {
  readonly tensor: TensorInfo;
  readonly first: number;
  readonly count: number;
  /** The weight's name in the model's plan, by which the importance of its columns is known. */
  readonly weight: string;
}

/** A tensor of a GGUF file and the rows that it is made of, in their order. */
export interface GgufTensor {
  /** GGUF's name. */
  readonly name: string;
  readonly shape: readonly number[];
  readonly rows: readonly RowRange[];
  /** As the card calls it: experts that share a tensor have a `*` for their index. */
  readonly module: string;
}

/**
 * What a unit's tensors become. What the model does not read is left out: a head beside a tied embedding, stored rotary frequencies,
 * multi-token-prediction layers.
 * @throws OctavoError `artifact_unsupported` naming a weight that the architecture has no place for
 */
export function placeTensors(source: SourceModel, unit: SourceUnit, layerNames: LayerNames): GgufTensor[] {
  const { path, config } = source.checkpoint;
  const { expertNames } = modelFamily(config.architecture);
  const unused = new Set(source.plan.unusedTensors);
  if (config.tieWordEmbeddings) unused.add("lm_head.weight");
  const placed: GgufTensor[] = [];
  const experts = new Map<string, { readonly index: number; readonly tensor: TensorInfo }[]>();
  for (const tensor of unit.tensors) {
    if (unused.has(tensor.name) || tensor.name.endsWith(".rotary_emb.inv_freq")) continue;
    const parts = expertNames && stackedParts(tensor, layerNames, expertNames);
    if (parts !== undefined) {
      placed.push(...parts);
      continue;
    }
    const place = ggufPlace(tensor.name, layerNames);
    if (place === undefined) {
      throw artifactUnsupported(
        path,
        `has the tensor ${JSON.stringify(tensor.name)}, which GGUF files of its architecture have no place for`,
      );
    }
    if (place.expert === undefined) {
      placed.push({ name: place.name, ...asMatrix(tensor, place.name), module: moduleOf(tensor.name) });
    } else {
      experts.set(place.name, [...(experts.get(place.name) ?? []), { index: place.expert, tensor }]);
    }
  }
  for (const [name, own] of experts) placed.push(joined(name, own));
  return placed;
}

function asMatrix(tensor: TensorInfo, name: string): Pick<GgufTensor, "shape" | "rows"> {
  const rows = [wholeOf(tensor)];
  // The shared expert's gate is a matrix of one row elsewhere.
  const isGate = name.endsWith(".ffn_gate_inp_shexp.weight");
  return { shape: isGate ? tensor.shape.slice(-1) : tensor.shape, rows };
}

function joined(
  name: string,
  own: readonly { readonly index: number; readonly tensor: TensorInfo }[],
): GgufTensor {
  const inOrder = own.toSorted((a, b) => a.index - b.index).map(({ tensor }) => tensor);
  const [first] = inOrder;
  return {
    name,
    shape: [inOrder.length, ...(first?.shape ?? [])],
    rows: inOrder.map(wholeOf),
    module: moduleOf(first?.name ?? name).replace(/\.experts\.\d+\./, ".experts.*."),
  };
}

/** A tensor that holds the experts of a layer one after another, as GGUF's; gate's rows stand before up's. */
function stackedParts(
  tensor: TensorInfo,
  layerNames: LayerNames,
  { fused }: ExpertNames,
): GgufTensor[] | undefined {
  const [, layer, name] = /^model\.layers\.(\d+)\.(.+)$/.exec(tensor.name) ?? [];
  const [count = 0, numRows = 0, cols = 0] = tensor.shape;
  if (layer === undefined || (name !== fused.gateUp && name !== fused.down)) return undefined;
  const parts = name === fused.down ? ["ffn_down_exps"] : ["ffn_gate_exps", "ffn_up_exps"];
  const each = numRows / parts.length;
  return parts.map((part, index) => ({
    name: `blk.${layer}.${part}.weight`,
    shape: [count, each, cols],
    rows: Array.from({ length: count }, (_, expert) => ({
      tensor: flat(tensor),
      first: expert * numRows + index * each,
      count: each,
      weight: sliceName(tensor.name, expert),
    })),
    module: `model.layers.${layer}.${layerNames[part] ?? part}`,
  }));
}

function wholeOf(tensor: TensorInfo): RowRange {
  return { tensor: flat(tensor), first: 0, count: rowsOf(tensor), weight: tensor.name };
}

function rowsOf({ shape }: TensorInfo): number {
  return shape.length === 1
    ? (shape[0] ?? 0)
    : shape.slice(0, -1).reduce((product, size) => product * size, 1);
}

function flat(tensor: TensorInfo): TensorInfo {
  return { ...tensor, shape: [rowsOf(tensor), tensor.shape.length === 1 ? 1 : (tensor.shape.at(-1) ?? 1)] };
}
