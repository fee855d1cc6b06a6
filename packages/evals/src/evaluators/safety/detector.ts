import { detect, type PatternDetector } from "@octavo/text/sensitive/detect";
import { z } from "zod";
import type { EvaluatorInput, Sample } from "../evaluator.js";
import { verdict } from "../outcomes.js";
import { defineEvaluator, type EvaluatorEntry } from "../registry.js";

/** Further findings are not collected: the verdict stands. */
const maxFindings = 1000;

type TextKind = "output" | "input" | "context";

const textsOf: Readonly<Record<TextKind, (sample: Sample) => string>> = {
  output: ({ answer }) => [answer.text, ...answer.toolCalls.map((call) => call.arguments)].join("\n"),
  input: ({ case: { messages } }) =>
    messages
      .filter(({ role }) => role === "user" || role === "tool")
      .map(({ content }) => content ?? "")
      .join("\n"),
  context: (sample) => sample.case.context ?? "",
};

/** A row that passes where none of its detectors finds anything; counts by kind are in the details, the finds are not. */
export function detectorEvaluator(
  name: string,
  description: string,
  detectors: readonly PatternDetector[],
  readDefault: TextKind = "output",
  prepare: (text: string) => string = (text) => text,
): EvaluatorEntry {
  const kinds = [...new Set(detectors.map(({ kind }) => kind))] as [string, ...string[]];
  const inputsOf = (read: TextKind): readonly EvaluatorInput[] => [read];
  return defineEvaluator({
    name,
    description,
    inputs: inputsOf(readDefault),
    options: z.strictObject({
      read: z.enum(["output", "input", "context"]).default(readDefault),
      kinds: z.array(z.enum(kinds)).min(1).default(kinds),
    }),
    create({ read, kinds: wanted }) {
      const chosen = detectors.filter(({ kind }) => wanted.includes(kind));
      return {
        inputs: inputsOf(read),
        score(sample) {
          const counts: Record<string, number> = {};
          for (const { kind } of detect(prepare(textsOf[read](sample)), chosen, maxFindings)) {
            counts[kind] = (counts[kind] ?? 0) + 1;
          }
          const found = Object.entries(counts).map(([kind, count]) => `${count} ${kind}`);
          return verdict(found.length === 0, `found ${found.join(", ")}`, { counts });
        },
      };
    },
  });
}
