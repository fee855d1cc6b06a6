import { z } from "zod";
import type { EvaluatorInput, Sample } from "../evaluator.js";
import { verdict } from "../outcomes.js";
import { defineEvaluator, type EvaluatorEntry } from "../registry.js";

/**
 * Something that a pattern finds and a check confirms. Patterns are global and bounded on every side, so that a scan takes
 * time linear in the text: no quantifier without an upper limit where a match can begin anywhere.
 */
export interface PatternDetector {
  /** Of the kind of thing, in snake_case. */
  readonly kind: string;
  readonly pattern: RegExp;
  /** Whether a match is one, such as by its checksum; it is given the text around it as well. */
  readonly confirms?: (match: string, around: string) => boolean;
}

interface Finding {
  readonly kind: string;
  readonly start: number;
  readonly end: number;
}

/** Text on either side of a match that a check may read. */
const aroundCharacters = 48;
/** Further findings are not collected: the verdict stands. */
const maxFindings = 1000;

/** What the detectors find, first detectors first; what overlaps an earlier finding is the same thing. */
function detect(text: string, detectors: readonly PatternDetector[]): Finding[] {
  const findings: Finding[] = [];
  const isTaken = new Uint8Array(text.length);
  for (const { kind, pattern, confirms } of detectors) {
    for (const match of text.matchAll(pattern)) {
      const start = match.index;
      const end = start + match[0].length;
      if (isTaken.subarray(start, end).includes(1)) continue;
      const around = text.slice(Math.max(0, start - aroundCharacters), end + aroundCharacters);
      if (confirms !== undefined && !confirms(match[0], around)) continue;
      isTaken.fill(1, start, end);
      findings.push({ kind, start, end });
      if (findings.length >= maxFindings) return findings;
    }
  }
  return findings;
}

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
          for (const { kind } of detect(prepare(textsOf[read](sample)), chosen)) {
            counts[kind] = (counts[kind] ?? 0) + 1;
          }
          const found = Object.entries(counts).map(([kind, count]) => `${count} ${kind}`);
          return verdict(found.length === 0, `found ${found.join(", ")}`, { counts });
        },
      };
    },
  });
}
