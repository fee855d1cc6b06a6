import { basename } from "node:path";
import type { Answer } from "../answers/answer.js";
import type { EvalCase } from "../cases/eval-case.js";
import type { Dataset } from "../datasets/dataset.js";
import { functionTarget } from "../targets/function-target.js";
import type { Target } from "../targets/target.js";
import { isCall, isWanted, type SpanSelection } from "./from-spans.js";
import { recordedExchanges } from "./recorded-exchange.js";
import { readSpanValues } from "./read-spans.js";
import { spanRecords } from "./span-record.js";

/** What was answered to the cases of recorded spans, as long as somebody holds the case. */
const recordedAnswers = new WeakMap<EvalCase, Answer>();

/**
 * Recorded requests as cases, in the order of the file or folder of spans; `recordedTarget` gives their answers. A call that a
 * client and its server both recorded is one case. Memory: the ids of the cases.
 */
export function spanDataset(path: string, filter: SpanSelection = {}): Dataset {
  let skipped: Record<string, number> = {};
  return {
    name: basename(path),
    size: undefined,
    skipped: () => skipped,
    async *cases() {
      skipped = {};
      const skip = (reason: string): void => {
        skipped[reason] = (skipped[reason] ?? 0) + 1;
      };
      const ids = new Set<string>();
      for await (const value of readSpanValues(path)) {
        for (const span of spanRecords(value)) {
          if (!isCall(span)) continue;
          const found = isWanted(span, filter) ? recordedExchanges(span) : "of another owner or side";
          if (typeof found === "string") {
            skip(found);
            continue;
          }
          for (const { evalCase, answer } of found) {
            if (ids.has(evalCase.id)) skip("recorded twice");
            else {
              ids.add(evalCase.id);
              recordedAnswers.set(evalCase, answer);
              yield evalCase;
            }
          }
        }
      }
    },
  };
}

/** Answers each case of `spanDataset` as it was answered when it was recorded. */
export function recordedTarget(name: string): Target {
  return functionTarget(name, (evalCase) => {
    const { target: _, caseId: __, ...answer } = recordedAnswers.get(evalCase) ?? unrecorded;
    return answer;
  });
}

const unrecorded: Pick<Answer, "target" | "caseId" | "failure"> = {
  target: "",
  caseId: "",
  failure: {
    code: "not_recorded",
    httpStatus: undefined,
    message: "the case does not come from recorded spans, so that nothing was answered",
  },
};
