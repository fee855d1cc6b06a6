import { createHash } from "node:crypto";
import { outputOf } from "../checks/collecting/from-answer.js";
import type { CaseMessage } from "../cases/eval-case.js";
import type { EvaluatorInput, Sample } from "../evaluators/evaluator.js";

/** What of a sample can be shown: how it was served is nothing to judge. */
export type ShownInput = Exclude<EvaluatorInput, "serving">;

/** A named text that a judge is shown. */
interface ShownText {
  readonly name: string;
  readonly text: string;
}

/** A sample's part as text; undefined where it has none. */
export function sampleText(sample: Sample, input: ShownInput): string | undefined {
  return readers[input](sample);
}

const readers: Readonly<Record<ShownInput, (sample: Sample) => string | undefined>> = {
  input: ({ case: { messages } }) => promptOf(messages),
  output: ({ answer }) => outputOf(answer),
  context: ({ case: { context } }) => context,
  expectedOutput: ({ case: { expected } }) => expected.outputs?.join("\nor:\n"),
  schema: ({ case: { expected } }) => jsonOf(expected.schema),
  tools: ({ case: { tools } }) =>
    tools.length === 0 ? undefined : jsonOf(tools.map((tool) => tool.function)),
  toolCalls: ({ answer: { toolCalls } }) =>
    toolCalls.length === 0
      ? "(no tool was called)"
      : toolCalls.map(({ name, arguments: given }) => `${name}(${given})`).join("\n"),
  expectedToolCalls: ({ case: { expected } }) => jsonOf(expected.toolCalls),
  conversation: ({ case: { messages }, answer }) =>
    `${transcriptOf(messages)}\n[assistant]\n${outputOf(answer)}`,
  baseline: ({ baseline }) => (baseline === undefined ? undefined : outputOf(baseline)),
};

/** One message of the user is its text; anything more is a transcript. */
function promptOf(messages: readonly CaseMessage[]): string {
  const [only] = messages;
  return messages.length === 1 && only?.role === "user" ? (only.content ?? "") : transcriptOf(messages);
}

function transcriptOf(messages: readonly CaseMessage[]): string {
  return messages
    .map(({ role, content, tool_calls: calls }) => {
      const called = (calls ?? []).map(({ function: { name, arguments: given } }) => `${name}(${given})`);
      return [`[${role}]`, ...(content === null ? [] : [content]), ...called].join("\n");
    })
    .join("\n");
}

function jsonOf(value: unknown): string | undefined {
  return value === undefined ? undefined : JSON.stringify(value);
}

/**
 * Texts between lines that no text can contain, since they carry a digest of all of them: a text that pretends to end
 * cannot speak to the judge.
 */
export function showTexts(texts: readonly ShownText[]): string {
  const digest = createHash("sha256").update(JSON.stringify(texts)).digest("hex").slice(0, 12);
  return texts
    .map(({ name, text }) => {
      const shown = text === "" ? "(empty)" : text;
      return `=== ${name} ${digest} ===\n${shown}\n=== end of ${name} ${digest} ===`;
    })
    .join("\n\n");
}
