import { artifactUnsupported } from "@octavo/text/files/artifact-file";
import { ggufPlace, type LayerNames } from "@octavo/artifacts/gguf/gguf-names";
import type { TensorInfo } from "@octavo/engine";
import { moduleOf, type SourceModel, type Unit } from "../source/source-model.js";

/** Rows of a stored tensor, seen as a matrix of as many columns as its last dimension has; a vector is a column. */
export interface RowRange {
  readonly tensor: TensorInfo;
  readonly first: number;
  readonly count: number;
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

/** Tensors that hold the experts of a layer one after another, and what they are in GGUF: gate's rows stand before up's. */
const stacked: readonly { readonly suffix: string; readonly parts: readonly string[] }[] = [
  { suffix: ".mlp.experts.gate_up_proj", parts: ["ffn_gate_exps", "ffn_up_exps"] },
  { suffix: ".mlp.experts.down_proj", parts: ["ffn_down_exps"] },
  { suffix: ".block_sparse_moe.input_linear.weight", parts: ["ffn_gate_exps", "ffn_up_exps"] },
  { suffix: ".block_sparse_moe.output_linear.weight", parts: ["ffn_down_exps"] },
];

/**
 * What a unit's tensors become. What the model does not read is left out: a head beside a tied embedding, stored rotary frequencies,
 * layers for guessing ahead.
 * @throws OctavoError `artifact_unsupported` naming a weight that the architecture has no place for
 */
export function placeTensors(source: SourceModel, unit: Unit, layerNames: LayerNames): GgufTensor[] {
  const { path, config } = source.checkpoint;
  const unused = new Set(source.plan.unusedTensors);
  if (config.tieWordEmbeddings) unused.add("lm_head.weight");
  const placed: GgufTensor[] = [];
  const experts = new Map<string, { readonly index: number; readonly tensor: TensorInfo }[]>();
  for (const tensor of unit.tensors) {
    if (unused.has(tensor.name) || tensor.name.endsWith(".rotary_emb.inv_freq")) continue;
    const parts = stackedParts(tensor, layerNames);
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
  const rows = [{ tensor: flat(tensor), first: 0, count: rowsOf(tensor) }];
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
    rows: inOrder.map((tensor) => ({ tensor: flat(tensor), first: 0, count: rowsOf(tensor) })),
    module: moduleOf(first?.name ?? name).replace(/\.experts\.\d+\./, ".experts.*."),
  };
}

function stackedParts(tensor: TensorInfo, layerNames: LayerNames): GgufTensor[] | undefined {
  const form = stacked.find(({ suffix }) => tensor.name.endsWith(suffix));
  const layer = /^model\.layers\.(\d+)\./.exec(tensor.name)?.[1];
  const [count = 0, numRows = 0, cols = 0] = tensor.shape;
  if (form === undefined || layer === undefined || tensor.shape.length !== 3) return undefined;
  const each = numRows / form.parts.length;
  return form.parts.map((part, index) => ({
    name: `blk.${layer}.${part}.weight`,
    shape: [count, each, cols],
    rows: Array.from({ length: count }, (_, expert) => ({
      tensor: flat(tensor),
      first: expert * numRows + index * each,
      count: each,
    })),
    module: `model.layers.${layer}.${layerNames[part] ?? part}`,
  }));
}

function rowsOf({ shape }: TensorInfo): number {
  return shape.length === 1
    ? (shape[0] ?? 0)
    : shape.slice(0, -1).reduce((product, size) => product * size, 1);
}

function flat(tensor: TensorInfo): TensorInfo {
  return { ...tensor, shape: [rowsOf(tensor), tensor.shape.length === 1 ? 1 : (tensor.shape.at(-1) ?? 1)] };
}
