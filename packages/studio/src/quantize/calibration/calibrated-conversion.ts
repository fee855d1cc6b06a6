import { artifactUnsupported } from "@octavo/text/files/artifact-file";
import { type MatrixPlan } from "@octavo/artifacts/program/model-plan";
import { tensorSlices } from "@octavo/artifacts/checkpoint/tensor-slices";
import type { TensorInfo } from "@octavo/engine";
import type { Backend } from "@octavo/kernels";
import type { ModuleFormat } from "../formats/module-format.js";
import type { MethodSettings } from "../options.js";
import type { EncodedMatrix } from "../output/output-tensor.js";
import type { ConvertedWeights, WeightConversion } from "../output/safetensors-converter.js";
import { digestOf, type UnitRecord, type WorkFolder } from "../output/work-folder.js";
import { weightError } from "../report/errors.js";
import { moduleOf, readTensorFloats, type SourceModel, type SourceUnit } from "../source/source-model.js";
import { encodeLayer, type LayerInputs } from "../methods/encode-layer.js";
import { embedTokens } from "./embedded-tokens.js";
import { HiddenStates } from "./hidden-states.js";
import { InputStatistics } from "./input-statistics.js";
import { type InputObserver, LayerRunner } from "./layer-runner.js";
import { type LayerStage, layerStages } from "./layer-stages.js";
import { timesTransposed } from "./matrix-products.js";
import type { CalibrationTexts } from "./texts.js";

/**
 * Runs the calibration texts through the model a layer at a time and quantises each by what its matrices multiply. What flows between
 * two layers waits in a file, so memory holds one layer and one sequence.
 *
 * GPTQ's layers see what the quantised layers before them give, so that they make up for those errors too; the other methods' see what
 * the original gives.
 */
export class CalibratedConversion implements WeightConversion {
  readonly #source: SourceModel;
  readonly #settings: MethodSettings;
  readonly #format: ModuleFormat;
  readonly #texts: CalibrationTexts;
  readonly #backend: Backend;

  constructor(
    source: SourceModel,
    settings: MethodSettings,
    format: ModuleFormat,
    texts: CalibrationTexts,
    backend: Backend,
  ) {
    this.#source = source;
    this.#settings = settings;
    this.#format = format;
    this.#texts = texts;
    this.#backend = backend;
    // A layer that cannot be run is known before anything is written.
    for (let layer = 0; layer < source.checkpoint.config.numLayers; layer++) this.#stages(layer);
  }

  async resume(finished: readonly UnitRecord[], work: WorkFolder): Promise<number> {
    const state = finished.at(-1)?.state;
    if (state === undefined) return finished.length;
    const digest = await digestOf(work.scratch(state.name), { offset: 0, byteLength: state.byteLength });
    return digest === state.sha256 ? finished.length : 0;
  }

  async convert(
    unit: SourceUnit,
    chosen: readonly TensorInfo[],
    work: WorkFolder,
  ): Promise<ConvertedWeights> {
    if (unit.layer !== undefined) return this.#convertLayer(unit, unit.layer, chosen, work);
    const encoded = new Map<string, EncodedMatrix>();
    for (const tensor of chosen) {
      const [rows = 0, cols = 0] = tensor.shape;
      encoded.set(
        tensor.name,
        this.#format.encode(moduleOf(tensor.name), await readTensorFloats(tensor), rows, cols),
      );
    }
    const isFirst = unit === this.#source.units[0];
    const state = isFirst ? { state: await this.#writeEmbedded(work) } : {};
    return { encoded, changed: new Map(), outputErrors: new Map(), ...state };
  }

  async #convertLayer(
    unit: SourceUnit,
    layer: number,
    chosen: readonly TensorInfo[],
    work: WorkFolder,
  ): Promise<ConvertedWeights> {
    const isLast = layer + 1 >= this.#source.checkpoint.config.numLayers;
    const before = await this.#openStates(work, layer);
    const after = isLast ? undefined : await this.#openStates(work, layer + 1);
    let converted: ConvertedWeights;
    try {
      converted = await this.#runLayer(unit, layer, chosen, before, after);
    } finally {
      await before.close();
      await after?.close();
    }
    return isLast ? converted : { ...converted, state: await this.#describe(work, layer + 1) };
  }

  /** Runs the texts through a layer and quantises it. What flows out of it goes to `after`. */
  async #runLayer(
    unit: SourceUnit,
    layer: number,
    chosen: readonly TensorInfo[],
    before: HiddenStates,
    after: HiddenStates | undefined,
  ): Promise<ConvertedWeights> {
    const { config } = this.#source.checkpoint;
    const weights = new Map<string, Float32Array>();
    for (const tensor of unit.tensors) addValues(weights, tensor, await readTensorFloats(tensor));
    const stages = this.#stages(layer);
    const inputs = this.#openStatistics(stages);
    const firsts = firstReaders(inputs);
    const observe: InputObserver = async (weight, rows) => {
      if (firsts.has(weight)) await inputs.get(weight)?.add(this.#backend, rows);
    };
    const advancesByResult = this.#settings.kind === "gptq";
    await this.#flow(stages, weights, before, advancesByResult ? undefined : after, observe);
    const result = await encodeLayer({
      backend: this.#backend,
      settings: this.#settings,
      format: this.#format,
      config,
      stages,
      inputs,
      weights,
      tensors: unit.tensors,
      chosen: new Set(chosen.map((tensor) => tensor.name)),
    });
    if (advancesByResult && after !== undefined) {
      const changed = new Map(weights);
      for (const [name, values] of result.changed) changed.set(name, values);
      for (const [name, matrix] of result.encoded) changed.set(name, matrix.values);
      await this.#flow(stages, changed, before, after, () => Promise.resolve());
    }
    const outputErrors = await this.#measure(inputs, weights, result.effective);
    return { encoded: result.encoded, changed: result.changed, outputErrors };
  }

  #stages(layer: number): LayerStage[] {
    const { checkpoint, plan } = this.#source;
    const stages = layerStages(plan, layer, checkpoint.path);
    if (stages.length === 0) throw artifactUnsupported(checkpoint.path, `has no ops for layer ${layer}`);
    return stages;
  }

  /** One for each input, shared by the matrices that read it. */
  #openStatistics(stages: readonly LayerStage[]): LayerInputs {
    const inputs: LayerInputs = new Map();
    const wantsMoments = this.#settings.kind === "gptq" && this.#settings.solve;
    for (const stage of stages) {
      const byColumn = new Map<number, InputStatistics>();
      for (const { weight, column, width } of stage.linears) {
        const known =
          byColumn.get(column) ?? new InputStatistics(width, this.#texts.facts.tokens, wantsMoments);
        byColumn.set(column, known);
        inputs.set(weight, known);
      }
      for (const { experts, topK } of stage.mixtures) {
        const perExpert = Math.ceil((this.#texts.facts.tokens * topK) / experts.length);
        for (const { gate, up, down } of experts) {
          const incoming = new InputStatistics(gate.cols, perExpert, wantsMoments);
          inputs.set(gate, incoming);
          if (up !== undefined) inputs.set(up, incoming);
          inputs.set(down, new InputStatistics(down.cols, perExpert, wantsMoments));
        }
      }
    }
    return inputs;
  }

  async #flow(
    stages: readonly LayerStage[],
    weights: ReadonlyMap<string, Float32Array>,
    before: HiddenStates,
    after: HiddenStates | undefined,
    observe: InputObserver,
  ): Promise<void> {
    const { sequences } = this.#texts;
    const longest = sequences.reduce((most, tokens) => Math.max(most, tokens.length), 1);
    using runner = await LayerRunner.create(this.#backend, stages, weights, longest);
    for (const sequence of sequences.keys()) {
      const out = await runner.run(await before.read(sequence), observe);
      await after?.write(sequence, out);
    }
  }

  /** Squared errors of the outputs on the sample, relative to the original's. */
  async #measure(
    inputs: LayerInputs,
    weights: ReadonlyMap<string, Float32Array>,
    effective: ReadonlyMap<string, Float32Array>,
  ): Promise<ReadonlyMap<string, number>> {
    const errors = new Map<string, number>();
    for (const [plan, statistics] of inputs) {
      const { sample } = statistics;
      // An expert that no token was sent to has no outputs to be measured by.
      if (sample.length === 0) continue;
      for (const { name } of plan.sources) {
        const values = effective.get(name);
        if (values === undefined) continue;
        const original = await timesTransposed(this.#backend, sample, weights.get(name)!, plan.cols);
        errors.set(
          name,
          weightError(original, await timesTransposed(this.#backend, sample, values, plan.cols)),
        );
      }
    }
    return errors;
  }

  async #writeEmbedded(work: WorkFolder): Promise<NonNullable<UnitRecord["state"]>> {
    const states = await this.#openStates(work, 0);
    for (const [sequence, tokens] of this.#texts.sequences.entries()) {
      await states.write(sequence, await embedTokens(this.#source.plan, tokens));
    }
    await states.close();
    return this.#describe(work, 0);
  }

  #openStates(work: WorkFolder, layer: number): Promise<HiddenStates> {
    return HiddenStates.open(
      work.scratch(stateName(layer)),
      this.#widths(layer),
      this.#texts.sequences.map((tokens) => tokens.length),
    );
  }

  /** What a layer reads of what was before it. */
  #widths(layer: number): [buffer: number, width: number][] {
    const made = new Set<number>();
    const needed = new Map<number, number>();
    for (const stage of this.#stages(layer)) {
      for (const { buffer, width } of stage.inputs) if (!made.has(buffer)) needed.set(buffer, width);
      for (const { buffer } of stage.outputs) made.add(buffer);
    }
    return [...needed];
  }

  async #describe(work: WorkFolder, layer: number): Promise<NonNullable<UnitRecord["state"]>> {
    const name = stateName(layer);
    const columns = this.#widths(layer).reduce((sum, [, width]) => sum + width, 0);
    const byteLength = 4 * columns * this.#texts.facts.tokens;
    const sha256 = (await digestOf(work.scratch(name), { offset: 0, byteLength })) ?? "";
    return { name, byteLength, sha256 };
  }
}

/** Two files take turns: what a layer reads stays until that layer is recorded. */
function stateName(layer: number): string {
  return `states-${layer % 2}.bin`;
}

/** Matrices that share an input share its statistics, which see it once. */
function firstReaders(inputs: LayerInputs): ReadonlySet<MatrixPlan> {
  const seen = new Set<InputStatistics>();
  const firsts = new Set<MatrixPlan>();
  for (const [plan, statistics] of inputs) {
    if (!seen.has(statistics)) firsts.add(plan);
    seen.add(statistics);
  }
  return firsts;
}

/** Experts that lie in one tensor also by themselves, under the names that the plan has for them. */
function addValues(weights: Map<string, Float32Array>, tensor: TensorInfo, values: Float32Array): void {
  weights.set(tensor.name, values);
  if (tensor.shape.length !== 3) return;
  const [count = 1] = tensor.shape;
  const size = values.length / count;
  for (const [index, { name }] of tensorSlices(tensor).entries()) {
    weights.set(name, values.subarray(index * size, (index + 1) * size));
  }
}
