import type { EvalCase } from "@octavo/evals";
import { type Shot, questionText } from "../artifact/candidate.js";

/** Cases whose right answer is known as examples. */
export function shotsOf(cases: readonly EvalCase[]): readonly Shot[] {
  return cases.flatMap((evalCase) => {
    const [output] = evalCase.expected.outputs ?? [];
    return output === undefined ? [] : [{ caseId: evalCase.id, input: questionText(evalCase), output }];
  });
}
