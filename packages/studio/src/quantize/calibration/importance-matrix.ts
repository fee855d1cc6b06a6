import type { UnitRecord, WorkFolder } from "../output/work-folder.js";
import type { SourceUnit } from "../source/source-model.js";
import type { CalibrationFlow } from "./calibration-flow.js";

/** Columns that the texts hardly use keep this share of the mean: other texts may use them. */
const leastShare = 1e-3;

interface UnitImportance {
  /** Of each column, by the weight's name; absent for weights that no text reached. */
  readonly byWeight: ReadonlyMap<string, Float32Array>;
  readonly state?: NonNullable<UnitRecord["state"]>;
}

/**
 * How much each column of a matrix matters: the mean square of what it multiplies on the calibration texts, in the original model
 * (llama.cpp's imatrix).
 */
export class ImportanceMatrix {
  readonly #flow: CalibrationFlow;

  constructor(flow: CalibrationFlow) {
    this.#flow = flow;
  }

  resume(finished: readonly UnitRecord[], work: WorkFolder): Promise<number> {
    return this.#flow.resume(finished, work);
  }

  /** Units must be asked for in their order. Embeddings and heads have no importance. */
  async of(unit: SourceUnit, work: WorkFolder): Promise<UnitImportance> {
    const byWeight = new Map<string, Float32Array>();
    if (unit.layer === undefined) {
      const isFirst = unit === this.#flow.source.units[0];
      return { byWeight, ...(isFirst && { state: await this.#flow.start(work) }) };
    }
    const { result: inputs, state } = await this.#flow.visit(unit, unit.layer, work, ({ observe }) =>
      observe({ wantsMoments: false, advances: true }),
    );
    for (const [plan, { meanSquares }] of inputs) {
      const mean = meanSquares.reduce((sum, value) => sum + value, 0) / meanSquares.length;
      if (!(mean > 0)) continue;
      const importance = Float32Array.from(meanSquares, (value) => Math.max(value, leastShare * mean));
      for (const { name } of plan.sources) byWeight.set(name, importance);
    }
    return { byWeight, ...(state !== undefined && { state }) };
  }
}
