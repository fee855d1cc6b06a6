import type { RecurrentOp } from "../ops.js";

/** Recurrent ops over a sequence from its first token, as their docstrings say, in double precision. */

type Row = ArrayLike<number>;
type Scan = Extract<RecurrentOp, { op: "gated_delta_rule" | "state_space" }>;

/** Values of an op's vectors. */
interface ScanVectors {
  readonly decayRate: Row;
  readonly stepBias: Row;
  /** Only for `state_space`. */
  readonly skip?: Row;
}

/** Inputs of one token. */
export interface ScanInputs {
  /** q or c, `[numKeyHeads, keyDim]`. */
  readonly query: Row;
  /** k or b. */
  readonly key: Row;
  /** v or x, `[numHeads, valueDim]`. */
  readonly value: Row;
  /** decay or step, one per head. */
  readonly step: Row;
  /** strength; of the delta rule alone. */
  readonly strength?: Row;
}

export function convolve(
  rows: readonly Row[],
  weight: Row,
  options: { readonly taps: number; readonly bias?: Row; readonly activation?: "silu" },
): number[][] {
  const { taps, bias, activation } = options;
  return rows.map((row, t) =>
    Array.from(row, (_, channel) => {
      let sum = bias?.[channel] ?? 0;
      for (let tap = 0; tap < taps; tap++)
        sum += (weight[channel * taps + tap] ?? 0) * (rows[t - taps + 1 + tap]?.[channel] ?? 0);
      return activation === "silu" ? sum / (1 + Math.exp(-sum)) : sum;
    }),
  );
}

/** Outputs of all tokens. */
export function scan(
  op: Pick<Scan, "op" | "numHeads" | "numKeyHeads" | "keyDim" | "valueDim" | "rateForm"> & {
    readonly keyHeads?: "grouped" | "tiled";
    readonly leastStep?: number;
    readonly mostStep?: number;
  },
  vectors: ScanVectors,
  tokens: readonly ScanInputs[],
): number[][] {
  const { numHeads, numKeyHeads, keyDim, valueDim } = op;
  const out = tokens.map(() => Array.from({ length: numHeads * valueDim }, () => 0));
  for (let head = 0; head < numHeads; head++) {
    const keyHead =
      op.keyHeads === "tiled" ? head % numKeyHeads : Math.floor((head * numKeyHeads) / numHeads);
    const state = Array.from({ length: keyDim }, () => new Float64Array(valueDim));
    for (const [t, token] of tokens.entries()) {
      const part = (row: Row): number[] =>
        Array.from({ length: keyDim }, (_, i) => row[keyHead * keyDim + i] ?? 0);
      const value = Array.from({ length: valueDim }, (_, j) => token.value[head * valueDim + j] ?? 0);
      const given = (token.step[head] ?? 0) + (vectors.stepBias[head] ?? 0);
      const positive = Math.max(given, 0) + Math.log1p(Math.exp(-Math.abs(given)));
      const step =
        op.op === "state_space"
          ? Math.min(op.mostStep ?? Infinity, Math.max(op.leastStep ?? 0, positive))
          : positive;
      const rate = vectors.decayRate[head] ?? 0;
      const decay = Math.exp(-(op.rateForm === "log" ? Math.exp(rate) : -rate) * step);
      const isDelta = op.op === "gated_delta_rule";
      const query = isDelta ? normalised(part(token.query), keyDim ** -0.5) : part(token.query);
      const key = isDelta ? normalised(part(token.key), 1) : part(token.key);
      for (let j = 0; j < valueDim; j++) {
        const known = state.reduce((sum, row, i) => sum + decay * (row[j] ?? 0) * (key[i] ?? 0), 0);
        const written = isDelta
          ? ((value[j] ?? 0) - known) / (1 + Math.exp(-(token.strength?.[head] ?? 0)))
          : step * (value[j] ?? 0);
        let sum = (vectors.skip?.[head] ?? 0) * (value[j] ?? 0);
        for (const [i, row] of state.entries()) {
          row[j] = decay * (row[j] ?? 0) + (key[i] ?? 0) * written;
          sum += (query[i] ?? 0) * (row[j] ?? 0);
        }
        out[t]![head * valueDim + j] = sum;
      }
    }
  }
  return out;
}

function normalised(values: readonly number[], scale: number): number[] {
  const factor = scale / Math.sqrt(values.reduce((sum, value) => sum + value * value, 0) + 1e-6);
  return values.map((value) => value * factor);
}
