import { OctavoError } from "@octavo/protocol/errors";

/** The cost of steps in ms by their prompt tokens and generating sequences. */
export interface StepCosts {
  readonly name: string;
  of(promptTokens: number, decodes: number): number;
}

/** Measured costs: `ms[i][j]` of a step with `promptTokens[i]` and `decodes[j]`, interpolated between. */
export interface RecordedSteps {
  readonly name: string;
  readonly processor: string;
  readonly promptTokens: readonly number[];
  readonly decodes: readonly number[];
  readonly ms: readonly (readonly number[])[];
}

/** A linear cost: reading the weights, plus a cost per token. */
export function linearCosts(
  name: string,
  base: number,
  perPromptToken: number,
  perDecode: number,
): StepCosts {
  return { name, of: (promptTokens, decodes) => base + perPromptToken * promptTokens + perDecode * decodes };
}

/** Recorded costs, multiplied by `times`, as for a larger model or a slower machine. */
export function recordedCosts({ name, promptTokens, decodes, ms }: RecordedSteps, times = 1): StepCosts {
  const at = (row: number, column: number): number => {
    const value = ms[row]?.[column];
    if (value === undefined)
      throw new OctavoError("internal_error", `${name}: no cost was recorded at ${row}, ${column}`);
    return value;
  };
  return {
    name,
    of(tokens, sequences) {
      const [row, down] = locate(promptTokens, tokens);
      const [column, right] = locate(decodes, sequences);
      const upper = at(row, column) + right * (at(row, column + 1) - at(row, column));
      const lower = at(row + 1, column) + right * (at(row + 1, column + 1) - at(row + 1, column));
      return times * (upper + down * (lower - upper));
    },
  };
}

/** Index of the scale point below a value, and the fraction to the next one; extrapolates beyond the end. */
function locate(scale: readonly number[], value: number): readonly [number, number] {
  let index = 0;
  while (index < scale.length - 2 && (scale[index + 1] ?? Number.POSITIVE_INFINITY) <= value) index += 1;
  const from = scale[index] ?? 0;
  const to = scale[index + 1] ?? from + 1;
  return [index, (value - from) / (to - from)];
}
