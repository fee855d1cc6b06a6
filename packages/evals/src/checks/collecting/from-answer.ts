import type { ServingRecordInfo } from "@octavo/protocol";
import type { Answer } from "../../answers/answer.js";
import type { EvalCase } from "../../cases/eval-case.js";
import type { Score } from "../../evaluators/evaluator.js";
import type { Observation, ObservedSlowGap } from "../observation.js";
import { factsOfHeaders } from "./from-headers.js";

/** What a check knows of a call that the answer does not tell. */
export interface ObservedUnder {
  /** Such as `baseline`, `candidate`, `solo`, `burst`. */
  readonly condition: string;
  readonly evalCase?: EvalCase;
  /** Whose it was sent as, where neither headers nor the serving record say. */
  readonly tenant?: string | undefined;
  readonly scores?: Readonly<Record<string, Score | number | null>>;
  readonly tags?: readonly string[];
}

/** What a check sees of an answer: times from when it was due, facts from the serving record, then from headers. */
export function observationFromAnswer(answer: Answer, under: ObservedUnder): Observation {
  const { timing, usage, serving, failure } = answer;
  const { evalCase } = under;
  const lateMs = timing.sentEpochMs - timing.scheduledEpochMs;
  const first = timing.pieceMs[0];
  const headers = factsOfHeaders(answer.headers);
  const failedScores = Object.entries(under.scores ?? {}).flatMap(([name, score]) =>
    typeof score === "object" && score?.status === "failed" ? [name] : [],
  );
  const cached = usage.cachedTokens ?? serving?.cached_tokens;
  return {
    caseId: answer.caseId,
    cluster: evalCase?.cluster,
    condition: under.condition,
    tenant: under.tenant ?? headers.tenant ?? serving?.tenant ?? evalCase?.tenant,
    replica: headers.replica ?? answer.target,
    tags: [
      ...(evalCase?.tags ?? []),
      ...(under.tags ?? []),
      ...(headers.isFallback === true ? ["fallback"] : []),
    ],
    scheduledEpochMs: timing.scheduledEpochMs,
    firstTokenMs: first === undefined ? undefined : lateMs + first,
    durationMs: lateMs + timing.durationMs,
    gapsMs: timing.pieceMs.slice(1).map((at, index) => at - timing.pieceMs[index]!),
    ...(serving === undefined ? {} : { slowGaps: slowGapsOf(serving) }),
    promptTokens: usage.promptTokens,
    completionTokens: usage.completionTokens,
    cacheHitRatio:
      serving?.cache_hit_ratio ??
      headers.cacheHitRatio ??
      (cached === undefined || !usage.promptTokens ? undefined : cached / usage.promptTokens),
    preemptions: serving?.preemptions,
    recomputedTokens: serving?.recomputed_tokens,
    ...(serving === undefined ? {} : { evictedPrefixTokens: serving.evicted_prefix_tokens }),
    batchSize: serving?.batch_size.mean,
    prefillTokensInBatch: serving?.shared_prefill_tokens.max,
    queueDepth: headers.queueDepth ?? serving?.queue_depth_at_arrival,
    replicaCount: headers.replicaCount,
    queueMs: serving?.queue_ms,
    failureCode: failure?.code,
    finishReason: answer.finishReason,
    scores: Object.fromEntries(
      Object.entries(under.scores ?? {}).map(([name, score]) => [name, valueOf(score)]),
    ),
    ...(failedScores.length === 0 ? {} : { failedScores }),
    output: outputOf(answer),
  };
}

/** Text and calls as one string: equal where a client could see no difference. */
export function outputOf({ text, toolCalls }: Pick<Answer, "text" | "toolCalls">): string {
  if (toolCalls.length === 0) return text;
  return `${text}${JSON.stringify(toolCalls.map(({ name, arguments: given }) => [name, given]))}`;
}

function valueOf(score: Score | number | null): number | null {
  if (score === null || typeof score === "number") return score;
  return score.status === "scored" ? score.value : null;
}

function slowGapsOf({ slow_gaps: gaps }: ServingRecordInfo): readonly ObservedSlowGap[] {
  return gaps.map(({ output, ms, usual_ms: usualMs, cause, parts }) => {
    const blamed = parts.find((part) => part.cause === cause);
    return {
      output,
      ms,
      usualMs,
      cause,
      prefillTokens: parts.find((part) => part.cause === "prefill_burst")?.tokens,
      culprits: (blamed?.requests ?? []).toSorted((a, b) => b.ms - a.ms).map((one) => one.request_id),
    };
  });
}
