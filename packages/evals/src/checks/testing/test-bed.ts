import type { EvalCase } from "../../cases/eval-case.js";
import type { Evaluator } from "../../evaluators/evaluator.js";
import { sampleOf } from "../../evaluators/testing/sample.js";
import { type FunctionAnswer, functionTarget } from "../../targets/function-target.js";
import type { AnswerOptions, Target } from "../../targets/target.js";
import type { TestBed } from "../test-bed.js";

export type Body = Readonly<Record<string, unknown>>;

export const exact: Evaluator = {
  name: "exact",
  description: "Equal to the reference.",
  inputs: ["output", "expectedOutput"],
  output: "pass_fail",
  needsJudge: false,
  evaluate: ({ case: { expected }, answer: { text } }) => {
    const isRight = expected.outputs?.includes(text) ?? false;
    return { status: "scored", value: Number(isRight), passed: isRight };
  },
};

/** Cases whose right answer is `rightFor` the case. */
export function testCases(count: number): readonly EvalCase[] {
  return Array.from({ length: count }, (_, index) => {
    const id = `case-${index}`;
    return { ...sampleOf({ case: { id } }).case, expected: { outputs: [`right ${index}`] } };
  });
}

export function bedOf(candidate: Target, parts: Partial<TestBed> = {}): TestBed {
  return {
    candidate,
    baseline: undefined,
    replicas: [],
    startReplica: undefined,
    cases: testCases(6),
    evaluators: [exact],
    seed: 7,
    signal: new AbortController().signal,
    ...parts,
  };
}

export const rightFor = ({ id }: EvalCase): string => id.replace("case-", "right ");

export interface Sent {
  readonly id: string;
  readonly target: string;
  readonly body: Body;
}

/** A target that keeps what it is sent. */
export function watched(
  name: string,
  sent: Sent[],
  answer: (evalCase: EvalCase, body: Body) => FunctionAnswer,
): Target {
  return functionTarget(name, (evalCase: EvalCase, { extraBody = {} }: AnswerOptions) => {
    sent.push({ id: evalCase.id, target: name, body: extraBody });
    return answer(evalCase, extraBody);
  });
}
