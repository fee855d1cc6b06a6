import { OctavoError } from "@octavo/protocol";
import type { Observation } from "../checks/observation.js";
import type { Evaluator, Sample } from "../evaluators/evaluator.js";
import type { Runner } from "../runners/runner.js";
import { observationOf, type SpanReading, wantedCalls } from "./from-spans.js";
import { readSpanValues } from "./read-spans.js";
import { recordedExchanges } from "./recorded-exchange.js";
import type { SpanRecord } from "./span-record.js";

/** A file or folder of spans. */
export interface SpanFile extends SpanReading {
  readonly path: string;
}

/** Bounds on what is kept of spans in memory. */
export interface SpanLimits {
  readonly calls: number;
  /** Total length of the outputs. */
  readonly characters: number;
}

/** About a gibibyte of memory each. */
const usualLimits: SpanLimits = { calls: 1_000_000, characters: 2 ** 29 };

/** How much of recorded spans is kept, and whether their answers are scored. */
export interface GatherOptions {
  readonly limits?: SpanLimits;
  /** Scores the recorded answers, beside the scores that spans already have. */
  readonly scoring?: SpanScoring;
}

/** How the recorded answers are scored. */
export interface SpanScoring {
  readonly evaluators: readonly Evaluator[];
  readonly runner: Runner;
  readonly signal: AbortSignal;
  /** Called with the reason for every call that could not be scored. */
  readonly onUnscored?: (reason: string) => void;
}

/** Calls that are scored together. */
const batchSize = 256;

/**
 * All calls of some files, for checks, which hold what they judge in memory.
 *
 * @throws OctavoError `dataset_invalid` where a file cannot be read, they are too many, or none of them can be scored
 */
export async function gatherSpans(
  files: readonly SpanFile[],
  { limits = usualLimits, scoring }: GatherOptions = {},
): Promise<readonly Observation[]> {
  const observations: Observation[] = [];
  let characters = 0;
  let numScored = 0;
  for (const { path, ...reading } of files)
    for await (const calls of batches(path, reading)) {
      const seen = calls.map((span) => observationOf(span, reading.condition));
      for (const { output } of seen) characters += output?.length ?? 0;
      const excess =
        observations.length + seen.length > limits.calls
          ? `${limits.calls.toLocaleString("en-US")} calls`
          : characters > limits.characters
            ? `${limits.characters.toLocaleString("en-US")} characters of output`
            : undefined;
      if (excess !== undefined)
        throw new OctavoError(
          "dataset_invalid",
          `${path}: more than ${excess}, which are held in memory: give a part of them, such as a day, or whole conversations drawn at random`,
          { param: path },
        );
      const scored = scoring === undefined ? undefined : await scoresOf(calls, scoring);
      for (const [index, observation] of seen.entries()) {
        const own = scored?.get(index);
        if (own !== undefined) numScored += 1;
        observations.push(own === undefined ? observation : withScores(observation, own));
      }
    }
  if (scoring !== undefined && numScored === 0)
    throw new OctavoError(
      "dataset_invalid",
      `none of the ${observations.length} recorded calls can be scored: spans have content where octavo serve runs with --trace-content, or the client with captureContent`,
      { param: "spans" },
    );
  return observations;
}

async function* batches(path: string, reading: SpanReading): AsyncGenerator<readonly SpanRecord[]> {
  let batch: SpanRecord[] = [];
  for await (const value of readSpanValues(path)) {
    batch.push(...wantedCalls(value, reading));
    if (batch.length < batchSize) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}

interface CallScores {
  readonly scores: Record<string, number | null>;
  readonly failed: string[];
}

/** By the call's place in the batch. */
async function scoresOf(
  calls: readonly SpanRecord[],
  { evaluators, runner, signal, onUnscored }: SpanScoring,
): Promise<ReadonlyMap<number, CallScores>> {
  const byCall = new Map<number, CallScores>();
  const samples = calls.flatMap((span, index): readonly Sample[] => {
    const found = recordedExchanges(span);
    const [first] = typeof found === "string" ? [] : found;
    if (first === undefined) {
      onUnscored?.(typeof found === "string" ? found : "nothing was recorded");
      return [];
    }
    byCall.set(index, { scores: {}, failed: [] });
    return [{ case: { ...first.evalCase, id: String(index) }, answer: first.answer }];
  });
  for await (const { caseId, evaluator, score } of runner.run(samples, evaluators, { signal })) {
    const own = byCall.get(Number(caseId));
    if (own === undefined) continue;
    own.scores[evaluator] = score.status === "scored" ? score.value : null;
    if (score.status === "failed") own.failed.push(evaluator);
  }
  return byCall;
}

function withScores(observation: Observation, { scores, failed }: CallScores): Observation {
  return {
    ...observation,
    scores: { ...observation.scores, ...scores },
    ...(failed.length === 0 ? {} : { failedScores: failed }),
  };
}
