import type { Evaluator, EvaluatorInput, Sample } from "./evaluator.js";

/**
 * Why a sample cannot be scored by an evaluator that reads these inputs; undefined where it can. An answer that never
 * came is no bad answer: the target's failures are counted apart.
 */
export function missingInput(sample: Sample, inputs: readonly EvaluatorInput[]): string | undefined {
  const { failure } = sample.answer;
  if (failure !== undefined) return `the target failed: ${failure.code}`;
  return firstLack(sample, inputs);
}

/** Why an evaluator leaves a case out, whatever the answer says and whether or not one came; undefined where it does not. */
export function reasonToSkip(
  { inputs, spec }: Pick<Evaluator, "inputs" | "spec">,
  sample: Sample,
): string | undefined {
  return missingTag(spec?.tags, sample) ?? firstLack(sample, inputs);
}

/** Why an evaluator of these tags alone has nothing to do with a sample. */
export function missingTag(tags: readonly string[] | undefined, sample: Sample): string | undefined {
  return tags === undefined || tags.some((tag) => sample.case.tags.includes(tag))
    ? undefined
    : `the case has none of the tags ${tags.join(", ")}`;
}

function firstLack(sample: Sample, inputs: readonly EvaluatorInput[]): string | undefined {
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
