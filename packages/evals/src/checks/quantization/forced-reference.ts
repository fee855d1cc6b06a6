import { OctavoError } from "@octavo/protocol";
import type { AnsweredToolCall } from "../../answers/answer.js";
import type { EvalCase } from "../../cases/eval-case.js";
import { forcedLogprobs } from "../../targets/forced-logprobs.js";
import { OpenAiTarget } from "../../targets/openai-target.js";
import type { Target } from "../../targets/target.js";
import type { ForcedToken } from "../observation.js";
import { textRoles } from "./text-roles.js";

/**
 * The case's reference under a target's model, token by token, with what each token is there for. Undefined where the case has
 * no reference, or the server gives no logprobs of prompts.
 */
export async function forceReference(
  target: Target,
  evalCase: EvalCase,
  signal: AbortSignal,
): Promise<readonly ForcedToken[] | undefined> {
  const answer = referenceOf(evalCase);
  if (!(target instanceof OpenAiTarget) || answer === undefined) return undefined;
  const { messages, tools } = evalCase;
  try {
    const { text, tokens } = await forcedLogprobs(target, { messages, tools, answer }, { signal });
    const roles = textRoles(text);
    return tokens.map(({ offset, token, logprob, rank }) => ({
      role: roleOf(roles, offset, token.length),
      logprob,
      rank,
    }));
  } catch (thrown) {
    if (signal.aborted) throw thrown;
    const { code } = OctavoError.from(thrown);
    if (code === "unsupported_parameter" || code === "target_unreachable") return undefined;
    throw thrown;
  }
}

interface Reference {
  readonly text: string;
  readonly toolCalls?: readonly AnsweredToolCall[];
}

/** The first accepted answer; of calls, the first accepted value of each argument. */
function referenceOf({ expected }: EvalCase): Reference | undefined {
  const [text] = expected.outputs ?? [];
  if (text !== undefined) return { text };
  if (expected.toolCalls === undefined || expected.toolCalls.length === 0) return undefined;
  const toolCalls = expected.toolCalls.map(({ name, arguments: accepted }, index) => {
    const given = Object.entries(accepted).flatMap(([key, [value]]) => (value === "" ? [] : [[key, value]]));
    return { id: `call_${index}`, name, arguments: JSON.stringify(Object.fromEntries(given)) };
  });
  return { text: "", toolCalls };
}

/** That of the first of its characters that is no structure: a token may hold a quote and the word behind it. */
function roleOf(roles: ReturnType<typeof textRoles>, offset: number, length: number): string {
  const own = roles.slice(offset, offset + Math.max(1, length));
  return own.find((role) => role !== "structure") ?? own[0] ?? "structure";
}
