import type { JudgeAnswer, JudgeModel, JudgeQuestion } from "../judge.js";

/** Answers as a test says, and keeps what it was asked. */
export class FakeJudge implements JudgeModel {
  readonly name: string;
  readonly questions: JudgeQuestion[] = [];
  readonly #answer: (question: JudgeQuestion) => Partial<JudgeAnswer> & { readonly label: string };

  constructor(
    answer: (question: JudgeQuestion) => Partial<JudgeAnswer> & { readonly label: string },
    name = "fake",
  ) {
    this.name = name;
    this.#answer = answer;
  }

  readonly withModel = (model: string): FakeJudge => new FakeJudge(this.#answer, model);

  /** A vector of each text's length; rejects where the answer would. */
  readonly embed = async (texts: readonly string[]): Promise<readonly (readonly number[])[]> => {
    await this.ask({ system: "", user: texts.join(""), labels: [], withReason: false });
    return texts.map((text) => [text.length, 1]);
  };

  ask(question: JudgeQuestion): Promise<JudgeAnswer> {
    this.questions.push(question);
    return new Promise((resolve) => {
      resolve({ probabilities: undefined, reason: undefined, ...this.#answer(question) });
    });
  }
}
