import type { AnsweredToolCall } from "../../answers/answer.js";
import type { EvalCase } from "../../cases/eval-case.js";
import type { Evaluator, Sample, Score } from "../evaluator.js";
import type { EvaluatorEntry } from "../registry.js";
import { EvaluatorTable } from "../registry.js";

interface SampleParts {
  readonly output?: string;
  readonly case?: Partial<EvalCase>;
  readonly toolCalls?: readonly Partial<AnsweredToolCall>[];
  readonly failure?: Sample["answer"]["failure"];
}

/** A sample of which only what matters to a test is given. */
export function sampleOf(parts: SampleParts = {}): Sample {
  const id = parts.case?.id ?? "case-1";
  return {
    case: {
      messages: [{ role: "user", content: "question" }],
      tools: [],
      context: undefined,
      expected: {},
      parameters: {},
      tenant: undefined,
      cluster: undefined,
      tags: [],
      metadata: {},
      ...parts.case,
      id,
    },
    answer: {
      caseId: id,
      target: "test",
      model: undefined,
      text: parts.output ?? "",
      reasoning: undefined,
      toolCalls: (parts.toolCalls ?? []).map((call, index) => ({
        id: `call-${index}`,
        name: "",
        arguments: "{}",
        ...call,
      })),
      finishReason: "stop",
      usage: { promptTokens: undefined, completionTokens: undefined, cachedTokens: undefined },
      timing: { scheduledEpochMs: 0, sentEpochMs: 0, durationMs: 0, pieceMs: [] },
      serving: undefined,
      headers: {},
      failure: parts.failure,
    },
  };
}

/** Scores one sample with one evaluator. */
export async function scoreOf(evaluator: Evaluator, sample: Sample): Promise<Score> {
  return evaluator.evaluate(sample, { signal: new AbortController().signal });
}

/** What a row says of an output: its value, or the status where there is none. */
export async function valueOf(
  rows: readonly EvaluatorEntry[],
  spec: unknown,
  sample: Sample,
): Promise<number | "skipped" | "failed"> {
  const [evaluator] = new EvaluatorTable(rows).create([spec]);
  const score = await scoreOf(evaluator!, sample);
  return score.status === "scored" ? score.value : score.status;
}
