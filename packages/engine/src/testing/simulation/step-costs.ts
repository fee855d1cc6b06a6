import { OctavoError } from "@octavo/protocol/errors";

/** What steps cost, in ms, by the prompt tokens and the generating sequences in them. */
export interface StepCosts {
  readonly name: string;
  of(promptTokens: number, decodes: number): number;
}

/** Costs as they were measured: `ms[i][j]` of a step with `promptTokens[i]` and `decodes[j]`, linear between. */
export interface RecordedSteps {
  readonly name: string;
  /** That ran them. */
  readonly processor: string;
  readonly promptTokens: readonly number[];
  readonly decodes: readonly number[];
  readonly ms: readonly (readonly number[])[];
}

/** A linear cost: reading the weights, and so much for each token. */
export function linearCosts(
  name: string,
  base: number,
  perPromptToken: number,
  perDecode: number,
): StepCosts {
  return { name, of: (promptTokens, decodes) => base + perPromptToken * promptTokens + perDecode * decodes };
}

/** Each step takes `times` as long as it was recorded, as those of a larger model or on a slower machine. */
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
      const [row, down] = place(promptTokens, tokens);
      const [column, right] = place(decodes, sequences);
      const upper = at(row, column) + right * (at(row, column + 1) - at(row, column));
      const lower = at(row + 1, column) + right * (at(row + 1, column + 1) - at(row + 1, column));
      return times * (upper + down * (lower - upper));
    },
  };
}

/** Where a value lies on a rising scale: the step below it, and how far it is to the next; beyond the end the last goes on. */
function place(scale: readonly number[], value: number): readonly [number, number] {
  let index = 0;
  while (index < scale.length - 2 && (scale[index + 1] ?? Number.POSITIVE_INFINITY) <= value) index += 1;
  const from = scale[index] ?? 0;
  const to = scale[index + 1] ?? from + 1;
  return [index, (value - from) / (to - from)];
}
