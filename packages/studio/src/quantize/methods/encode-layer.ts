import type { ModelConfig, TensorInfo } from "@octavo/engine";
import type { MatrixPlan } from "@octavo/artifacts/program/model-plan";
import type { Backend } from "@octavo/kernels";
import type { InputStatistics } from "../calibration/input-statistics.js";
import type { LayerStage } from "../calibration/layer-stages.js";
import { store } from "../formats/half.js";
import { type IntegerGroups, roundToNearest } from "../formats/integer-groups.js";
import { integerFormat, type ModuleFormat } from "../formats/module-format.js";
import type { MethodSettings } from "../options.js";
import type { EncodedMatrix } from "../output/output-tensor.js";
import { floatType, moduleOf } from "../source/source-model.js";
import { type AwqMatrix, searchScales, searchShrinks } from "./awq.js";
import { fold, type FoldableInput, foldableInputs, type FoldedWeights } from "./folding.js";
import { solveGptq } from "./gptq.js";
import { smoothingScales } from "./smooth-quant.js";

/** Statistics of the input of each stacked matrix; matrices that share an input share them. */
export type LayerInputs = Map<MatrixPlan, InputStatistics>;

interface LayerToEncode {
  readonly backend: Backend;
  readonly settings: MethodSettings;
  readonly format: ModuleFormat;
  readonly config: ModelConfig;
  readonly stages: readonly LayerStage[];
  readonly inputs: LayerInputs;
  /** By tensor name, as in the original. */
  readonly weights: ReadonlyMap<string, Float32Array>;
  readonly tensors: readonly TensorInfo[];
  readonly chosen: ReadonlySet<string>;
}

interface EncodedLayer {
  readonly encoded: ReadonlyMap<string, EncodedMatrix>;
  /** Tensors that are stored as floats, but not as they were. */
  readonly changed: ReadonlyMap<string, Float32Array>;
  /** What each encoded matrix does to the original's inputs and gives in the original's outputs, foldings undone. */
  readonly effective: ReadonlyMap<string, Float32Array>;
}

/** Quantises a layer's chosen matrices by the method. */
export async function encodeLayer(layer: LayerToEncode): Promise<EncodedLayer> {
  const { settings, tensors, weights } = layer;
  if (settings.kind === "gptq" && settings.solve) return encodeGptq(layer);
  const folded: FoldedWeights = {
    weights: new Map(weights),
    columns: new Map(tensors.map(({ name, shape }) => [name, shape[1] ?? 1])),
    inputScales: new Map(),
    outputScales: new Map(),
    changed: new Set(),
  };
  await foldAll(layer, folded);
  const encoded = new Map<string, EncodedMatrix>();
  const effective = new Map<string, Float32Array>();
  for (const [plan, statistics] of layer.inputs) {
    for (const { name, shape } of plan.sources) {
      if (!layer.chosen.has(name)) continue;
      const [rows = 0, cols = 0] = shape;
      const matrix = await encodeMatrix(
        layer,
        folded,
        name,
        { weight: folded.weights.get(name)!, rows, cols },
        statistics,
      );
      encoded.set(name, matrix);
      effective.set(
        name,
        unfold(matrix.values, rows, folded.inputScales.get(name), folded.outputScales.get(name)),
      );
    }
  }
  const changed = new Map<string, Float32Array>();
  for (const name of folded.changed) if (!encoded.has(name)) changed.set(name, folded.weights.get(name)!);
  return { encoded, changed, effective };
}

async function foldAll(layer: LayerToEncode, folded: FoldedWeights): Promise<void> {
  const { settings, backend, stages, config, inputs, chosen, tensors } = layer;
  const types = new Map(tensors.map((tensor) => [tensor.name, floatType(tensor)]));
  const round = (name: string, values: Float32Array): Float32Array =>
    store(values, types.get(name) ?? "f32").values;
  for (const stage of stages) {
    for (const input of foldableInputs(stage, config)) {
      if (!isAllChosen(input, chosen)) continue;
      const matrices = matricesOf(input, folded.weights);
      const statistics = inputs.get(input.linears[0]!.weight)!;
      if (statistics.sample.length === 0) continue;
      if (settings.kind === "awq" && settings.search) {
        const scales = await searchScales(backend, input, matrices, statistics, integerFormat(settings));
        fold(folded, input, scales, round);
      } else if (settings.kind === "int8" && input.producer.kind === "norm") {
        fold(folded, input, smoothingScales(input, matrices, statistics), round);
      }
    }
  }
}

/** Inputs of matrices that stay floats are not scaled: that would only add rounding. */
function isAllChosen({ linears, producer }: FoldableInput, chosen: ReadonlySet<string>): boolean {
  const names = linears.flatMap((linear) => linear.weight.sources.map((source) => source.name));
  const producers = producer.kind === "rows" ? producer.parts.map((part) => part.weight) : [];
  return [...names, ...producers].every((name) => chosen.has(name));
}

function matricesOf(input: FoldableInput, weights: ReadonlyMap<string, Float32Array>): AwqMatrix[] {
  return input.linears.flatMap((linear) =>
    linear.weight.sources.map(({ name, shape }) => ({
      weight: weights.get(name)!,
      rows: shape[0] ?? 0,
      cols: shape[1] ?? 0,
    })),
  );
}

async function encodeMatrix(
  { backend, settings, format }: LayerToEncode,
  folded: FoldedWeights,
  name: string,
  matrix: AwqMatrix,
  statistics: InputStatistics,
): Promise<EncodedMatrix> {
  const module = moduleOf(name);
  const { weight, rows, cols } = matrix;
  if (settings.kind !== "awq" || !settings.search) return format.encode(module, weight, rows, cols);
  const integers = integerFormat(settings);
  const scales = folded.inputScales.get(name);
  const sample = statistics.sample.map((value, at) => value / (scales?.[at % cols] ?? 1));
  const shape = { rows, cols, bits: integers.bits, groupSize: integers.groupSizeOf(cols) };
  const shrinks = isQueryOrKey(name) ? undefined : await searchShrinks(backend, matrix, sample, integers);
  return integers.pack(module, roundToNearest(weight, shape, integers.symmetric, shrinks));
}

/** Their outputs are multiplied with each other; a range that is right for either alone is too narrow for that. */
function isQueryOrKey(name: string): boolean {
  return /\.(?:q_proj|k_proj|qkv_proj)\./.test(name);
}

/** W' = W * inputScales / outputScales, read backwards. */
function unfold(
  values: Float32Array,
  rows: number,
  inputScales: Float32Array | undefined,
  outputScales: Float32Array | undefined,
): Float32Array {
  const cols = values.length / rows;
  const out = new Float32Array(values.length);
  for (let row = 0; row < rows; row++) {
    const scale = outputScales?.[row] ?? 1;
    for (let col = 0; col < cols; col++) {
      out[row * cols + col] = (values[row * cols + col]! * scale) / (inputScales?.[col] ?? 1);
    }
  }
  return out;
}

/** Matrices that share an input are solved as one, since rows are independent. */
async function encodeGptq(layer: LayerToEncode): Promise<EncodedLayer> {
  const { backend, settings, inputs, weights, chosen } = layer;
  const encoded = new Map<string, EncodedMatrix>();
  const effective = new Map<string, Float32Array>();
  if (settings.kind !== "gptq") return { encoded, changed: new Map(), effective };
  const format = integerFormat(settings);
  const { bits, symmetric } = format;
  for (const statistics of new Set(inputs.values())) {
    const sources = [...inputs]
      .filter(([, other]) => other === statistics)
      .flatMap(([plan]) => plan.sources)
      .filter((source) => chosen.has(source.name));
    if (sources.length === 0) continue;
    const cols = statistics.width;
    const stacked = stack(sources.map((source) => weights.get(source.name)!));
    const moments = await statistics.takeMoments(backend);
    const groupSize = format.groupSizeOf(cols);
    const solved = await solveGptq(backend, stacked, moments, {
      bits,
      groupSize,
      symmetric,
      actOrder: settings.actOrder,
    });
    let first = 0;
    for (const { name, shape } of sources) {
      const [rows = 0] = shape;
      const matrix = format.pack(moduleOf(name), takeRows(solved, first, rows));
      encoded.set(name, matrix);
      effective.set(name, matrix.values);
      first += rows;
    }
  }
  return { encoded, changed: new Map(), effective };
}

function stack(parts: readonly Float32Array[]): Float32Array {
  const out = new Float32Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

function takeRows(matrix: IntegerGroups, first: number, rows: number): IntegerGroups {
  const { cols, groupSize, codes, scales, zeros } = matrix;
  const groups = cols / groupSize;
  return {
    ...matrix,
    rows,
    codes: codes.slice(first * cols, (first + rows) * cols),
    scales: scales.slice(first * groups, (first + rows) * groups),
    zeros: zeros.slice(first * groups, (first + rows) * groups),
  };
}
