import type { EvaluatorInput, Sample } from "./evaluator.js";

/**
 * Why a sample cannot be scored by an evaluator that reads these inputs; undefined where it can. An answer that never
 * came is no bad answer: the target's failures are counted apart.
 */
export function missingInput(sample: Sample, inputs: readonly EvaluatorInput[]): string | undefined {
  const { failure } = sample.answer;
  if (failure !== undefined) return `the target failed: ${failure.code}`;
  for (const input of inputs) {
    const lack = lacks[input](sample);
    if (lack !== undefined) return lack;
  }
  return undefined;
}

const lacks: Readonly<Record<EvaluatorInput, (sample: Sample) => string | undefined>> = {
  input: ({ case: { messages } }) =>
    messages.some(({ role, content }) => role === "user" && content !== null)
      ? undefined
      : "the case has no message of the user",
  output: () => undefined,
  context: ({ case: { context } }) => (context === undefined ? "the case has no context" : undefined),
  expectedOutput: ({ case: { expected } }) =>
    expected.outputs === undefined || expected.outputs.length === 0
      ? "the case has no expected output"
      : undefined,
  schema: ({ case: { expected } }) => (expected.schema === undefined ? "the case has no schema" : undefined),
  tools: ({ case: { tools } }) => (tools.length === 0 ? "the case has no tools" : undefined),
  toolCalls: () => undefined,
  expectedToolCalls: ({ case: { expected } }) =>
    expected.toolCalls === undefined ? "the case has no expected tool calls" : undefined,
  conversation: ({ case: { messages } }) =>
    messages.filter(({ role }) => role === "user").length < 2
      ? "the case is not a conversation of several turns"
      : undefined,
  baseline: ({ baseline }) => {
    if (baseline === undefined) return "there is no baseline answer";
    return baseline.failure === undefined ? undefined : `the baseline failed: ${baseline.failure.code}`;
  },
  serving: () => undefined,
};
