import { OctavoError } from "@octavo/protocol";
import { z } from "zod";
import { verdict } from "../outcomes.js";
import { defineEvaluator, type EvaluatorEntry } from "../registry.js";
import { withinTime } from "../within-time.js";
import { quote } from "./comparable.js";

const options = z.strictObject({
  pattern: z.string().min(1).max(4096),
  flags: z
    .string()
    .regex(/^(?!.*(.).*\1)[imsu]*$/, "expected any of the flags i, m, s and u, each once")
    .default("u"),
  /** The whole output must match, not a part of it. */
  full: z.boolean().default(false),
  timeoutMs: z.int().min(1).max(10_000).default(250),
});

/**
 * Patterns are JavaScript's, backtracking and all: one that runs away on an output is cut off, and the score has failed.
 * A linear-time engine would have to refuse lookaround and back references that configurations written for other tools use.
 */
export const regexEvaluator: EvaluatorEntry = defineEvaluator({
  name: "regex",
  description: "A regular expression matches the output.",
  options,
  create({ pattern, flags, full, timeoutMs }) {
    const expression = compile(full ? `^(?:${pattern})$` : pattern, flags);
    return {
      score({ answer }) {
        const matches = withinTime(timeoutMs, `the pattern ${quote(pattern)} on this output`, () =>
          expression.test(answer.text),
        );
        return verdict(matches, `the output does not match ${quote(pattern)}`);
      },
    };
  },
});

function compile(pattern: string, flags: string): RegExp {
  try {
    return new RegExp(pattern, flags);
  } catch (cause) {
    const { message } = OctavoError.from(cause);
    throw new OctavoError("invalid_option", `regex: pattern: ${message.slice(0, 300)}`, { cause });
  }
}
