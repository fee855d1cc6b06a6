import type { ShownInput } from "../sample-texts.js";

/** What a judge is asked about a sample: one row of the table. The value is such that more is better. */
export type Rubric = PassFailRubric | ScaleRubric | ChoiceRubric;

interface RubricBase {
  readonly name: string;
  /** One sentence, as tables of evaluators show it. */
  readonly description: string;
  /** What the judge is shown. */
  readonly inputs: readonly ShownInput[];
  /** What it is shown where the sample has it. */
  readonly alsoShown?: readonly ShownInput[];
}

/** A question with two answers. */
interface PassFailRubric extends RubricBase {
  readonly output: "pass_fail";
  readonly pass: string;
  readonly fail: string;
}

/** A quality in five grades: 1 maps to 0, 5 to 1. With probabilities of grades the score is their mean. */
interface ScaleRubric extends RubricBase {
  readonly output: "score";
  readonly best: string;
  readonly worst: string;
}

/** One of several labels. */
interface ChoiceRubric extends RubricBase {
  readonly output: "choice";
  readonly question: string;
  readonly labels: readonly RubricLabel[];
}

/** A grade that a judge may give, what it means, and what it is worth. */
export interface RubricLabel {
  readonly label: string;
  readonly meaning: string;
  /** 0 to 1. */
  readonly value: number;
}

/** How often something was done as it should be. */
export function frequencies(meanings: {
  readonly always: string;
  readonly never: string;
}): readonly RubricLabel[] {
  return [
    { label: "always", meaning: meanings.always, value: 1 },
    { label: "mostly", meaning: "nearly every time", value: 0.75 },
    { label: "sometimes", meaning: "about half of the times", value: 0.5 },
    { label: "rarely", meaning: "hardly ever", value: 0.25 },
    { label: "never", meaning: meanings.never, value: 0 },
  ];
}

/** Fields that the question shows; those with `?` only if the sample has them. */
type Shown = readonly (ShownInput | `${ShownInput}?`)[];
type Rows<Row extends Rubric> = Readonly<
  Record<string, Omit<Row, "name" | "output" | "inputs" | "alsoShown">>
>;

function rowsOf<Row extends Rubric>(output: Row["output"], shown: Shown, rows: Rows<Row>): readonly Row[] {
  const inputs = shown.filter((input) => !input.endsWith("?"));
  const alsoShown = shown.filter((input) => input.endsWith("?")).map((input) => input.slice(0, -1));
  return Object.entries(rows).map(
    ([name, row]) =>
      ({ name, inputs, ...(alsoShown.length > 0 && { alsoShown }), output, ...row }) as unknown as Row,
  );
}

/** Rubrics of two answers over the same inputs, by name. */
export function passFail(shown: Shown, rows: Rows<PassFailRubric>): readonly Rubric[] {
  return rowsOf<PassFailRubric>("pass_fail", shown, rows);
}

/** Rubrics in five grades. */
export function graded(shown: Shown, rows: Rows<ScaleRubric>): readonly Rubric[] {
  return rowsOf<ScaleRubric>("score", shown, rows);
}

/** Rubrics with labels of their own. */
export function labelled(shown: Shown, rows: Rows<ChoiceRubric>): readonly Rubric[] {
  return rowsOf<ChoiceRubric>("choice", shown, rows);
}
