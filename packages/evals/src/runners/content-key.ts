import type { Answer } from "../answers/answer.js";
import { journalKey } from "../journal/journal.js";
import type { Evaluator, Sample } from "../evaluators/evaluator.js";

/**
 * Keys of scores by what decides them: the case, what was answered and the evaluator with its options. The same pair has
 * the same key in every process, so journals are resumed and jobs are idempotent by it. How the answer was served counts
 * only for evaluators that read it: the same text tomorrow need not be judged again.
 */
export class ContentKeys {
  readonly #evaluators = new Map<Evaluator, string>();
  readonly #samples = new WeakMap<Sample, string>();

  /** 32 hexadecimal digits: 128 bits of a SHA-256. */
  of(sample: Sample, evaluator: Evaluator): string {
    let evaluatorText = this.#evaluators.get(evaluator);
    if (evaluatorText === undefined) {
      const { name, spec, fingerprint } = evaluator;
      evaluatorText = JSON.stringify([name, spec ?? null, fingerprint ?? null]);
      this.#evaluators.set(evaluator, evaluatorText);
    }
    let sampleDigest = this.#samples.get(sample);
    if (sampleDigest === undefined) {
      sampleDigest = journalKey(
        JSON.stringify([sample.case, contentOf(sample.answer), contentOf(sample.baseline)]),
      );
      this.#samples.set(sample, sampleDigest);
    }
    const serving = evaluator.inputs.includes("serving") ? JSON.stringify(servingOf(sample.answer)) : "";
    return journalKey(`${sampleDigest}\n${evaluatorText}\n${serving}`);
  }
}

function contentOf(answer: Answer | undefined): unknown {
  if (answer === undefined) return null;
  const { model, text, reasoning, toolCalls, failure } = answer;
  // call ids are generated for each answer
  const calls = toolCalls.map((call) => [call.name, call.arguments]);
  return [model ?? null, text, reasoning ?? null, calls, failure?.code ?? null];
}

function servingOf({ usage, timing, finishReason, serving, headers }: Answer): unknown {
  return [usage, timing, finishReason, serving, headers];
}
