import { OctavoError, asRecord, asString, parseJson } from "@octavo/protocol";
import { Random } from "@octavo/statistics";

/** How a case came to be labelled: figures are of those drawn at random alone, since hard ones flatter nobody. */
export type LabelChoice = "random" | "hard";

/** What a person said of one answer. */
export interface HumanLabel {
  readonly caseId: string;
  readonly passed: boolean;
  readonly chosen: LabelChoice;
}

export interface ScoredForLabels {
  readonly caseId: string;
  /** The evaluator's score, 0 to 1. */
  readonly value: number;
  /** Another wording's score; undefined where there is none. */
  readonly other: number | undefined;
}

/** Share of the requested labels that is drawn at random. */
const randomShare = 0.5;

/**
 * The cases whose labels tell most: where two wordings of the rule disagree, and near the threshold. Every other one is drawn at
 * random, so that agreement can be measured without bias.
 */
export function chooseForLabels(
  scored: readonly ScoredForLabels[],
  count: number,
  threshold: number,
  seed: number,
): readonly { readonly caseId: string; readonly chosen: LabelChoice }[] {
  const random = new Random(seed);
  const drawn = random.shuffle(scored);
  const numRandom = Math.ceil(Math.min(count, scored.length) * randomShare);
  const byChance = drawn.slice(0, numRandom).map(({ caseId }) => ({ caseId, chosen: "random" as const }));
  const worth = ({ value, other }: ScoredForLabels): number =>
    Math.abs(value - (other ?? value)) + 1 - Math.abs(value - threshold) / Math.max(threshold, 1 - threshold);
  const hard = drawn
    .slice(numRandom)
    .toSorted((a, b) => worth(b) - worth(a))
    .slice(0, count - numRandom)
    .map(({ caseId }) => ({ caseId, chosen: "hard" as const }));
  // mixed, so that the labeller does not know which is which
  return random.shuffle([...byChance, ...hard]);
}

/** @throws OctavoError `dataset_invalid` with the line that is none */
export function parseLabels(path: string, text: string): readonly HumanLabel[] {
  return text.split("\n").flatMap((line, index): readonly HumanLabel[] => {
    if (line.trim() === "") return [];
    const fields = asRecord(parseJson(line)?.value);
    const caseId = asString(fields["id"]);
    const { label, chosen = "random" } = fields;
    if (
      caseId === undefined ||
      (label !== "pass" && label !== "fail") ||
      (chosen !== "random" && chosen !== "hard")
    )
      throw new OctavoError(
        "dataset_invalid",
        `${path}, line ${index + 1}: expected {"id": ..., "label": "pass" or "fail"}`,
        {
          param: "labels",
        },
      );
    return [{ caseId, passed: label === "pass", chosen }];
  });
}

/** A person's label as a line of the file that `octavo eval author` reads. */
export function labelLine({ caseId, passed, chosen }: HumanLabel): string {
  return `${JSON.stringify({ id: caseId, label: passed ? "pass" : "fail", chosen })}\n`;
}
