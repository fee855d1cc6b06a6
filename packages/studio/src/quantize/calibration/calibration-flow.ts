import { artifactUnsupported } from "@octavo/text/files/artifact-file";
import { tensorSlices } from "@octavo/artifacts/checkpoint/tensor-slices";
import type { MatrixPlan } from "@octavo/artifacts/program/model-plan";
import type { TensorInfo } from "@octavo/engine";
import type { Backend } from "@octavo/kernels";
import type { LayerInputs } from "../methods/encode-layer.js";
import { digestOf, type UnitRecord, type WorkFolder } from "../output/work-folder.js";
import { readTensorFloats, type SourceModel, type SourceUnit } from "../source/source-model.js";
import { embedTokens } from "./embedded-tokens.js";
import { HiddenStates } from "./hidden-states.js";
import { InputStatistics } from "./input-statistics.js";
import { type InputObserver, LayerRunner } from "./layer-runner.js";
import { type LayerStage, layerStages } from "./layer-stages.js";
import type { CalibrationTexts } from "./texts.js";

/** Values of weights by name. */
export type WeightValues = ReadonlyMap<string, Float32Array>;
type UnitState = NonNullable<UnitRecord["state"]>;

/** A layer while the texts are before it. */
export interface LayerVisit {
  readonly stages: readonly LayerStage[];
  /** The layer's weights; experts that lie in one tensor also by themselves, under the names that the plan has for them. */
  readonly weights: WeightValues;
  /** Runs the texts through the layer and keeps what comes out of it for the next one. */
  readonly advance: (weights: WeightValues) => Promise<void>;
  /** Runs the texts through the layer and gathers what its matrices multiply; advances them as well where that is asked for. */
  readonly observe: (options: {
    readonly wantsMoments: boolean;
    readonly advances: boolean;
  }) => Promise<LayerInputs>;
}

/**
 * Runs the calibration texts through the model a layer at a time. What flows between two layers waits in a file, so memory holds one
 * layer and one sequence.
 */
export class CalibrationFlow {
  readonly backend: Backend;
  readonly source: SourceModel;
  readonly #texts: CalibrationTexts;

  constructor(source: SourceModel, texts: CalibrationTexts, backend: Backend) {
    this.source = source;
    this.backend = backend;
    this.#texts = texts;
    // A layer that cannot be run is known before anything is written.
    for (let layer = 0; layer < source.checkpoint.config.numLayers; layer++) this.#stages(layer);
  }

  /** How many finished units can be kept: none if the states after them are gone. */
  async resume(finished: readonly UnitRecord[], work: WorkFolder): Promise<number> {
    const state = finished.at(-1)?.state;
    if (state === undefined) return finished.length;
    const digest = await digestOf(work.scratch(state.name), { offset: 0, byteLength: state.byteLength });
    return digest === state.sha256 ? finished.length : 0;
  }

  /** What the texts are before the first layer. */
  async start(work: WorkFolder): Promise<UnitState> {
    const states = await this.#openStates(work, 0);
    for (const [sequence, tokens] of this.#texts.sequences.entries()) {
      await states.write(sequence, await embedTokens(this.source.plan, tokens));
    }
    await states.close();
    return this.#describe(work, 0);
  }

  /** Opens a layer for `use`, which must let the texts advance once. */
  async visit<T>(
    unit: SourceUnit,
    layer: number,
    work: WorkFolder,
    use: (visit: LayerVisit) => Promise<T>,
  ): Promise<{ readonly result: T; readonly state?: UnitState }> {
    const isLast = layer + 1 >= this.source.checkpoint.config.numLayers;
    const before = await this.#openStates(work, layer);
    const after = isLast ? undefined : await this.#openStates(work, layer + 1);
    let result: T;
    try {
      const stages = this.#stages(layer);
      const weights = new Map<string, Float32Array>();
      for (const tensor of unit.tensors) addValues(weights, tensor, await readTensorFloats(tensor));
      result = await use({
        stages,
        weights,
        advance: async (changed) => {
          if (after !== undefined) await this.#run(stages, changed, before, after);
        },
        observe: async ({ wantsMoments, advances }) => {
          const inputs = this.#openStatistics(stages, wantsMoments);
          const firsts = firstReaders(inputs);
          await this.#run(stages, weights, before, advances ? after : undefined, async (weight, rows) => {
            if (firsts.has(weight)) await inputs.get(weight)?.add(this.backend, rows);
          });
          return inputs;
        },
      });
    } finally {
      await before.close();
      await after?.close();
    }
    return isLast ? { result } : { result, state: await this.#describe(work, layer + 1) };
  }

  #stages(layer: number): LayerStage[] {
    const { checkpoint, plan } = this.source;
    const stages = layerStages(plan, layer, checkpoint.path);
    if (stages.length === 0) throw artifactUnsupported(checkpoint.path, `has no ops for layer ${layer}`);
    return stages;
  }

  /** One for each input, shared by the matrices that read it. */
  #openStatistics(stages: readonly LayerStage[], wantsMoments: boolean): LayerInputs {
    const inputs: LayerInputs = new Map();
    const { tokens } = this.#texts.facts;
    for (const stage of stages) {
      const byColumn = new Map<number, InputStatistics>();
      for (const { weight, column, width } of stage.linears) {
        const known = byColumn.get(column) ?? new InputStatistics(width, tokens, wantsMoments);
        byColumn.set(column, known);
        inputs.set(weight, known);
      }
      for (const { experts, topK } of stage.mixtures) {
        const perExpert = Math.ceil((tokens * topK) / experts.length);
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

  async #run(
    stages: readonly LayerStage[],
    weights: WeightValues,
    before: HiddenStates,
    after: HiddenStates | undefined,
    observe: InputObserver = () => Promise.resolve(),
  ): Promise<void> {
    const { sequences } = this.#texts;
    const longest = sequences.reduce((most, tokens) => Math.max(most, tokens.length), 1);
    const { config } = this.source.checkpoint;
    using runner = await LayerRunner.create(this.backend, stages, weights, config, longest);
    for (const sequence of sequences.keys()) {
      const out = await runner.run(await before.read(sequence), observe);
      await after?.write(sequence, out);
    }
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

  async #describe(work: WorkFolder, layer: number): Promise<UnitState> {
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

function addValues(weights: Map<string, Float32Array>, tensor: TensorInfo, values: Float32Array): void {
  weights.set(tensor.name, values);
  if (tensor.shape.length !== 3) return;
  const [count = 1] = tensor.shape;
  const size = values.length / count;
  for (const [index, { name }] of tensorSlices(tensor).entries()) {
    weights.set(name, values.subarray(index * size, (index + 1) * size));
  }
}
