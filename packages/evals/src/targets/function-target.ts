import { OctavoError } from "@octavo/protocol";
import type { Answer } from "../answers/answer.js";
import type { EvalCase } from "../cases/eval-case.js";
import type { AnswerOptions, Target } from "./target.js";

/** What an answering function gives: text alone, or any fields of an answer. */
export type FunctionAnswer = string | Partial<Omit<Answer, "caseId" | "target">>;

/** Your own code as a target: an answer for each case. What it throws becomes a failed answer. */
export type AnsweringFunction = (
  evalCase: EvalCase,
  options: AnswerOptions,
) => FunctionAnswer | Promise<FunctionAnswer>;

/** A function of this process as a target. What it throws becomes a failed answer. */
export function functionTarget(name: string, answer: AnsweringFunction): Target {
  return {
    name,
    answer: async (evalCase, options) => {
      options.signal.throwIfAborted();
      const sentEpochMs = Date.now();
      const startMs = performance.now();
      const complete = (fields: Exclude<FunctionAnswer, string>): Answer => ({
        model: undefined,
        text: "",
        reasoning: undefined,
        toolCalls: [],
        finishReason: undefined,
        usage: { promptTokens: undefined, completionTokens: undefined, cachedTokens: undefined },
        timing: {
          scheduledEpochMs: options.scheduledEpochMs ?? sentEpochMs,
          sentEpochMs,
          durationMs: performance.now() - startMs,
          pieceMs: [],
        },
        serving: undefined,
        headers: {},
        failure: undefined,
        ...fields,
        caseId: evalCase.id,
        target: name,
      });
      try {
        const given = await answer(evalCase, options);
        return complete(typeof given === "string" ? { text: given, finishReason: "stop" } : given);
      } catch (thrown) {
        if (options.signal.aborted) throw options.signal.reason;
        const { code, message } = OctavoError.from(thrown);
        return complete({ failure: { code, httpStatus: undefined, message } });
      }
    },
  };
}
