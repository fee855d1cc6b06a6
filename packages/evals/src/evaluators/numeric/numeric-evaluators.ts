import { z } from "zod";
import { markedAnswer } from "../answer-part.js";
import type { Sample } from "../evaluator.js";
import { skipped, verdict } from "../outcomes.js";
import { defineEvaluator, type EvaluatorEntry } from "../registry.js";
import { quantitiesIn, type DecimalMark, type Quantity } from "./quantity.js";
import { unitOf } from "./units.js";

/** Conversion of units rounds. */
const rounding = 1e-9;

const options = z.strictObject({
  value: z.union([z.number(), z.string()]).optional().describe("Instead of the case's expected output."),
  absolute: z.number().nonnegative().default(0),
  relative: z.number().nonnegative().default(0).describe("As a share of the expected value, such as 0.01."),
  pick: z
    .enum(["last", "first", "any"])
    .default("last")
    .describe("Which number of the output counts; one after `answer is`, `####` or `\\boxed{` goes before."),
  decimal: z.enum([".", ","]).default("."),
  requireUnit: z.boolean().default(false).describe("A number without a unit is wrong where one is expected."),
});

export const numericEvaluators: readonly EvaluatorEntry[] = [
  defineEvaluator({
    name: "numeric_match",
    description: "A number of the output is the expected one within a tolerance; units are converted.",
    inputs: ["output", "expectedOutput"],
    options,
    create: ({ value, absolute, relative, pick, decimal, requireUnit }) => ({
      inputs: value === undefined ? ["output", "expectedOutput"] : ["output"],
      score(sample) {
        const wanted = wantedOf(sample, value, decimal);
        if (wanted.length === 0) return skipped("the expected output holds no number");
        const found = pickedFrom(sample.answer.text, pick, decimal);
        if (found.length === 0) return verdict(false, "the output holds no number");
        const isNear = (a: Quantity, b: Quantity): boolean => {
          const [own, other] = inOneUnit(a, b, requireUnit) ?? [Number.NaN, 0];
          const tolerance = Math.max(absolute * factorOf(b), relative * Math.abs(other));
          return Math.abs(own - other) <= tolerance + rounding * Math.abs(other);
        };
        const passed = found.some((own) => wanted.some((other) => isNear(own, other)));
        return verdict(
          passed,
          `${found.slice(0, 3).map(show).join(", ")} is not ${wanted.map(show).join(" or ")}`,
        );
      },
    }),
  }),
];

function wantedOf(sample: Sample, value: number | string | undefined, decimal: DecimalMark): Quantity[] {
  if (typeof value === "number") return [{ value, unit: undefined }];
  const texts = value === undefined ? (sample.case.expected.outputs ?? []) : [value];
  // of a worked solution the last number is the result
  return texts.flatMap((text) => pickedFrom(text, "last", decimal));
}

function pickedFrom(text: string, pick: "last" | "first" | "any", decimal: DecimalMark): Quantity[] {
  const marked = markedAnswer(text);
  if (marked !== undefined && pick !== "any") {
    const [first] = quantitiesIn(marked, decimal);
    if (first !== undefined) return [first];
  }
  const all = quantitiesIn(text, decimal);
  if (pick === "any") return all;
  return all.slice(...(pick === "first" ? [0, 1] : [-1]));
}

function factorOf({ unit }: Quantity): number {
  return unit === undefined ? 1 : (unitOf(unit)?.factor ?? 1);
}

/** Both in the base unit; a number without a unit is taken in the other's. Undefined where they cannot be compared. */
function inOneUnit(a: Quantity, b: Quantity, requireUnit: boolean): [number, number] | undefined {
  if (b.unit === undefined || a.unit === undefined) {
    return b.unit !== undefined && requireUnit ? undefined : [a.value * factorOf(b), b.value * factorOf(b)];
  }
  if (unitOf(a.unit)?.dimension !== unitOf(b.unit)?.dimension) return undefined;
  return [a.value * factorOf(a), b.value * factorOf(b)];
}

function show({ value, unit }: Quantity): string {
  return unit === undefined ? String(value) : `${value} ${unit}`;
}
