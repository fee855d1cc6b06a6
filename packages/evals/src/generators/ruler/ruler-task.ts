import type { Random } from "@octavo/statistics";

/** RULER's thirteen tasks, as its paper names them. */
export const rulerTaskNames = [
  "niah_single_1",
  "niah_single_2",
  "niah_single_3",
  "niah_multikey_1",
  "niah_multikey_2",
  "niah_multikey_3",
  "niah_multivalue",
  "niah_multiquery",
  "vt",
  "cwe",
  "fwe",
  "qa_1",
  "qa_2",
] as const;
/** A task of RULER (arXiv 2404.06654). */
export type RulerTaskName = (typeof rulerTaskNames)[number];

/** A task of RULER (Hsieh et al., 2024, arXiv 2404.06654): questions over a text that can be made any length. */
export interface RulerTask {
  readonly name: RulerTaskName;
  /** Tokens that an answer may take; they are part of the length. */
  readonly answerTokens: number;
  /** `all`: each reference counts by its share; `part`: one reference is enough. */
  readonly match: "all" | "part";
  /** What the user must bring. */
  readonly needs: "nothing" | "text" | "questions";
  /** Draws the question; the size of the haystack is decided afterwards. */
  draw(source: RulerSource): RulerDraft;
}

export interface RulerSource {
  readonly random: Random;
  /** Wanted length, with the answer's tokens. */
  readonly lengthTokens: number;
  /** Sentences of the user's text; empty where there is none. */
  readonly sentences: readonly string[];
  /** Empty where there are none. */
  readonly questions: readonly RulerQuestion[];
}

/** A question over documents, for the tasks that take SQuAD's or HotpotQA's. */
export interface RulerQuestion {
  readonly question: string;
  /** Any of them is right. */
  readonly answers: readonly string[];
  /** Those that hold the answer. */
  readonly documents: readonly string[];
}

export interface RulerDraft {
  /** Any of `match`'s references. */
  readonly references: readonly string[];
  readonly minSize: number;
  readonly maxSize: number;
  /** The prompt with a haystack of this size. Larger sizes give longer prompts; the same size gives the same one. */
  prompt(size: number): string;
}
