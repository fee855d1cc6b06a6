import { evaluatorFileFormat } from "@octavo/evals";
import { material, type TeacherDesk } from "../search/teacher.js";
import { type AuthoredEvaluator, nameOf } from "./authored-evaluator.js";

export interface WriteOptions {
  readonly statement: string;
  readonly as?: string | undefined;
  /** Answers to be judged, so that the criteria are about what occurs. */
  readonly answers: readonly string[];
}

export interface WrittenEvaluator {
  readonly evaluator: AuthoredEvaluator;
  readonly warnings: readonly string[];
}

/** The statement as criteria, when nobody has worked them out. */
export function bareEvaluator(statement: string, as = nameOf(statement)): AuthoredEvaluator {
  return {
    format: evaluatorFileFormat,
    statement,
    version: 1,
    name: "custom_llm_judge",
    as,
    threshold: 0.5,
    options: {
      grading_criteria: `1.0 if this holds of the output, 0.0 if not: ${statement}`,
      few_shot_examples: [],
    },
    anchors: {},
  };
}

const shownAnswers = 5;
const examplesOfEach = 2;

/** The first version: criteria and examples from a statement, by a model that writes. */
export async function writeEvaluator(
  desk: TeacherDesk,
  { statement, as, answers }: WriteOptions,
): Promise<WrittenEvaluator> {
  const bare = bareEvaluator(statement, as);
  const shown = answers
    .slice(0, shownAnswers)
    .map((answer, index) => material(`Answer ${index + 1}`, answer.slice(0, 2000)));
  const rule = material("The rule", statement);
  const [criteria] = await desk.texts(
    `${rule}\n\nAnswers of the kind that will be judged:\n\n${shown.join("\n\n")}\n\nWrite grading criteria for this rule, for a judge that gives an answer a score from 0.0 to 1.0: what makes it 1.0, what makes it 0.0, and how cases near the border are decided.`,
    "criteria",
  );
  if (criteria === undefined)
    return {
      evaluator: bare,
      warnings: ["no criteria were written: the statement itself is what the judge gets"],
    };
  desk.noteNew();
  const examples: { inputs: string; output: number }[] = [];
  for (const [tag, output, holds] of [
    ["good", 1, "keep"],
    ["bad", 0, "break"],
  ] as const) {
    const question = `${rule}\n\n${material("The criteria", criteria)}\n\nWrite ${examplesOfEach} short answers that ${holds} the rule.`;
    const texts = await desk.texts(question, tag, examplesOfEach);
    if (texts.length > 0) desk.noteNew();
    examples.push(...texts.map((inputs) => ({ inputs, output })));
  }
  return {
    evaluator: { ...bare, options: { grading_criteria: criteria, few_shot_examples: examples } },
    warnings: examples.length === 0 ? ["no examples were written"] : [],
  };
}
