import { z } from "zod";
import { verdict } from "../outcomes.js";
import { defineEvaluator, type EvaluatorEntry } from "../registry.js";
import { comparable, comparisonOptions, quote, wantedOptions, wantedTexts } from "./comparable.js";

type Quantifier = "some" | "every";

/** A row that holds the output against texts: `holds` for one of them, or for each. */
function matcher(
  name: string,
  description: string,
  quantifier: Quantifier,
  holds: (output: string, wanted: string) => boolean,
): EvaluatorEntry {
  return defineEvaluator({
    name,
    description,
    inputs: ["output", "expectedOutput"],
    options: z.strictObject({ ...comparisonOptions, ...wantedOptions }),
    create(options) {
      const wanted = wantedTexts(options);
      return {
        inputs: wanted.inputs,
        score(sample) {
          const output = comparable(sample.answer.text, options);
          const lacking = wanted.of(sample).filter((text) => !holds(output, comparable(text, options)));
          const passed =
            quantifier === "every" ? lacking.length === 0 : lacking.length < wanted.of(sample).length;
          const listed = lacking.slice(0, 5).map((text) => quote(text));
          return verdict(passed, `${quote(output)} does not match ${listed.join(", ")}`);
        },
      };
    },
  });
}

const contains = (output: string, wanted: string): boolean => output.includes(wanted);

export const matchingEvaluators: readonly EvaluatorEntry[] = [
  matcher(
    "exact_match",
    "The output is one of the expected texts.",
    "some",
    (output, wanted) => output === wanted,
  ),
  matcher("contains", "The output contains one of the texts.", "some", contains),
  matcher("contains_any", "The output contains at least one of the texts.", "some", contains),
  matcher("contains_all", "The output contains every one of the texts.", "every", contains),
  matcher("starts_with", "The output begins with one of the texts.", "some", (output, wanted) =>
    output.startsWith(wanted),
  ),
  matcher("ends_with", "The output ends with one of the texts.", "some", (output, wanted) =>
    output.endsWith(wanted),
  ),
];
