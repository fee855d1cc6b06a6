import type { TensorInfo } from "@octavo/engine";
import type { ModuleFormat } from "../formats/module-format.js";
import { encodeLayer, type LayerInputs } from "../methods/encode-layer.js";
import type { MethodSettings } from "../options.js";
import type { EncodedMatrix } from "../output/output-tensor.js";
import type { ConvertedWeights, WeightConversion } from "../output/safetensors-converter.js";
import type { UnitRecord, WorkFolder } from "../output/work-folder.js";
import { weightError } from "../report/errors.js";
import { moduleOf, readTensorFloats, type SourceUnit } from "../source/source-model.js";
import type { CalibrationFlow, LayerVisit, WeightValues } from "./calibration-flow.js";
import { timesTransposed } from "./matrix-products.js";

/**
 * Quantises each layer by what its matrices multiply on the calibration texts.
 *
 * GPTQ's layers see what the quantised layers before them give, so that they make up for those errors too; the other methods' see what
 * the original gives.
 */
export class CalibratedConversion implements WeightConversion {
  readonly #flow: CalibrationFlow;
  readonly #settings: MethodSettings;
  readonly #format: ModuleFormat;

  constructor(flow: CalibrationFlow, settings: MethodSettings, format: ModuleFormat) {
    this.#flow = flow;
    this.#settings = settings;
    this.#format = format;
  }

  resume(finished: readonly UnitRecord[], work: WorkFolder): Promise<number> {
    return this.#flow.resume(finished, work);
  }

  async convert(
    unit: SourceUnit,
    chosen: readonly TensorInfo[],
    work: WorkFolder,
  ): Promise<ConvertedWeights> {
    if (unit.layer !== undefined) {
      const visited = await this.#flow.visit(unit, unit.layer, work, (visit) =>
        this.#convertLayer(unit, chosen, visit),
      );
      const { result, state } = visited;
      return { ...result, ...(state !== undefined && { state }) };
    }
    const encoded = new Map<string, EncodedMatrix>();
    for (const tensor of chosen) {
      const [rows = 0, cols = 0] = tensor.shape;
      encoded.set(
        tensor.name,
        this.#format.encode(moduleOf(tensor.name), await readTensorFloats(tensor), rows, cols),
      );
    }
    const isFirst = unit === this.#flow.source.units[0];
    const state = isFirst ? { state: await this.#flow.start(work) } : {};
    return { encoded, changed: new Map(), outputErrors: new Map(), ...state };
  }

  async #convertLayer(
    unit: SourceUnit,
    chosen: readonly TensorInfo[],
    { stages, weights, observe, advance }: LayerVisit,
  ): Promise<ConvertedWeights> {
    const settings = this.#settings;
    const advancesByResult = settings.kind === "gptq";
    const wantsMoments = settings.kind === "gptq" && settings.solve;
    const inputs = await observe({ wantsMoments, advances: !advancesByResult });
    const result = await encodeLayer({
      backend: this.#flow.backend,
      settings,
      format: this.#format,
      config: this.#flow.source.checkpoint.config,
      stages,
      inputs,
      weights,
      tensors: unit.tensors,
      chosen: new Set(chosen.map((tensor) => tensor.name)),
    });
    if (advancesByResult) {
      const changed = new Map(weights);
      for (const [name, values] of result.changed) changed.set(name, values);
      for (const [name, matrix] of result.encoded) changed.set(name, matrix.values);
      await advance(changed);
    }
    const outputErrors = await this.#measure(inputs, weights, result.effective);
    return { encoded: result.encoded, changed: result.changed, outputErrors };
  }

  /** Squared errors of the outputs on the sample, relative to the original's. */
  async #measure(
    inputs: LayerInputs,
    weights: WeightValues,
    effective: WeightValues,
  ): Promise<ReadonlyMap<string, number>> {
    const { backend } = this.#flow;
    const errors = new Map<string, number>();
    for (const [plan, { sample }] of inputs) {
      // An expert that no token was sent to has no outputs to be measured by.
      if (sample.length === 0) continue;
      for (const { name } of plan.sources) {
        const values = effective.get(name);
        if (values === undefined) continue;
        const original = await timesTransposed(backend, sample, weights.get(name)!, plan.cols);
        errors.set(name, weightError(original, await timesTransposed(backend, sample, values, plan.cols)));
      }
    }
    return errors;
  }
}
