import { definedFields } from "@octavo/protocol";
import { outputOf } from "../checks/collecting/from-answer.js";
import type { Observation, ObservedSlowGap } from "../checks/observation.js";
import { callMarks, type Fact, factNames, type FactNames, scorePrefix } from "./fact-names.js";
import { recordedContent } from "./recorded-content.js";
import { type SpanRecord, spanRecords } from "./span-record.js";

/** Which spans are read. */
export interface SpanSelection {
  /** Only spans of this side, where both a client and its server wrote one. Default: all. */
  readonly side?: "client" | "server";
  /** Only spans of this owner, such as `tenant acme`, `key 0` or `anyone`. Default: all. */
  readonly owner?: string | undefined;
}

/** Which spans are read, and under which condition. */
export interface SpanReading extends SpanSelection {
  /** Condition of spans without one (`octavo.condition`). */
  readonly condition: string;
}

/**
 * Observations of the calls in one JSON value: spans in any of the three conventions, as OTLP, as rows of Octavo's local
 * store, or as SDKs print them. Spans that are not calls of a model that writes text are left out.
 */
export function observationsFromSpans(value: unknown, reading: SpanReading): readonly Observation[] {
  return wantedCalls(value, reading).map((span) => observationOf(span, reading.condition));
}

/** The spans of one JSON value that are calls of a model that writes text, of the owner and side that are read. */
export function wantedCalls(value: unknown, reading: SpanSelection): readonly SpanRecord[] {
  return spanRecords(value).filter((span) => isCall(span) && isWanted(span, reading));
}

export function isWanted(span: SpanRecord, { side, owner }: SpanSelection): boolean {
  if (side !== undefined && span.side !== undefined && span.side !== side) return false;
  return owner === undefined || ownerOfSpan(span) === owner;
}

/** Spans that do not name their owner are their tenant's. */
export function ownerOfSpan({ facts }: SpanRecord): string {
  const tenant = textOf(facts, factNames.tenant);
  return textOf(facts, factNames.owner) ?? (tenant === undefined ? "anyone" : `tenant ${tenant}`);
}

/** Whether it is a call of a model that writes text. */
export function isCall({ facts }: SpanRecord): boolean {
  const marks = Object.entries(callMarks).filter(([name]) => facts.has(name));
  if (marks.length > 0) return marks.some(([name, kinds]) => kinds.has(String(facts.get(name))));
  // some spans of the guides have nothing but the facts themselves
  return [...factNames.promptTokens, ...factNames.completionTokens, ...factNames.queueDepth].some((name) =>
    facts.has(name),
  );
}

/** What a check looks at of a recorded span, under the condition that it was recorded in. */
export function observationOf(span: SpanRecord, condition: string): Observation {
  const { facts } = span;
  const number = (fact: Fact) => numberOf(facts, factNames[fact]);
  const text = (fact: Fact) => textOf(facts, factNames[fact]);
  const promptTokens = number("promptTokens");
  const completionTokens = number("completionTokens");
  const cachedTokens = number("cachedTokens");
  const hasGaps = number("gapP99Ms") !== undefined || number("gapMaxMs") !== undefined;
  const slowGap = slowGapOf(span);
  const recorded = {
    evictedPrefixTokens: number("evictedPrefixTokens"),
    gapSummary: hasGaps
      ? {
          count: number("gapCount") ?? Math.max(0, (completionTokens ?? 1) - 1),
          p99Ms: number("gapP99Ms"),
          maxMs: number("gapMaxMs"),
        }
      : undefined,
    slowGaps: slowGap === undefined ? undefined : [slowGap],
  };
  return {
    caseId: text("caseId") ?? text("responseId") ?? span.spanId ?? span.traceId ?? String(span.startEpochMs),
    cluster: text("cluster"),
    condition: text("condition") ?? condition,
    tenant: text("tenant"),
    replica: text("replica"),
    tags: tagsOf(facts),
    scheduledEpochMs: span.startEpochMs,
    firstTokenMs: number("firstTokenMs"),
    durationMs: span.durationMs,
    gapsMs: [],
    promptTokens,
    completionTokens,
    cacheHitRatio:
      number("cacheHitRatio") ??
      (cachedTokens === undefined || !promptTokens ? undefined : cachedTokens / promptTokens),
    preemptions: number("preemptions"),
    recomputedTokens: number("recomputedTokens"),
    batchSize: number("batchSize"),
    prefillTokensInBatch: number("prefillTokensInBatch"),
    queueDepth: number("queueDepth"),
    replicaCount: number("replicaCount"),
    queueMs: number("queueMs"),
    failureCode: text("failure") ?? (span.isError ? "error" : undefined),
    finishReason: text("finishReason"),
    scores: { ...scoresOf(facts), ...span.scores },
    output: recordedOutput(facts) ?? text("output"),
    ...definedFields(recorded),
  };
}

/** The text and calls of the recorded answer, as they are compared. */
function recordedOutput(facts: SpanRecord["facts"]): string | undefined {
  const answered = recordedContent(facts)?.answered[0];
  return answered && outputOf(answered);
}

function slowGapOf({ facts }: SpanRecord): ObservedSlowGap | undefined {
  const cause = textOf(facts, factNames.slowGapCause);
  const ms = numberOf(facts, factNames.slowGapMs) ?? numberOf(facts, factNames.gapMaxMs);
  if (cause === undefined || ms === undefined) return undefined;
  const culprit = textOf(facts, factNames.slowGapCulprit);
  return {
    output: undefined,
    ms,
    usualMs: numberOf(facts, factNames.slowGapUsualMs),
    cause,
    prefillTokens: numberOf(facts, factNames.prefillTokensInBatch),
    culprits: culprit === undefined ? [] : [culprit],
  };
}

function scoresOf(facts: ReadonlyMap<string, unknown>): Record<string, number> {
  const scores: Record<string, number> = {};
  for (const [name, value] of facts) {
    if (!name.startsWith(scorePrefix) || typeof value !== "number") continue;
    scores[name.slice(scorePrefix.length)] = value;
  }
  return scores;
}

function tagsOf(facts: ReadonlyMap<string, unknown>): readonly string[] {
  const value = factNames.tags.map((name) => facts.get(name)).find((found) => found !== undefined);
  return Array.isArray(value) ? value.filter((tag) => typeof tag === "string") : [];
}

export function numberOf(facts: ReadonlyMap<string, unknown>, names: FactNames): number | undefined {
  for (const name of names) {
    const [key, scale] = typeof name === "string" ? [name, 1] : [name.seconds, 1000];
    const value = facts.get(key);
    const isNumeric = typeof value === "number" || (typeof value === "string" && value.trim() !== "");
    if (isNumeric && Number.isFinite(Number(value))) return Number(value) * scale;
  }
  return undefined;
}

/** The first entry of a list. */
export function textOf(facts: ReadonlyMap<string, unknown>, names: FactNames): string | undefined {
  for (const name of names) {
    const value: unknown = facts.get(typeof name === "string" ? name : name.seconds);
    const first: unknown = Array.isArray(value) ? value[0] : value;
    if (typeof first === "string" && first !== "") return first;
    if (typeof first === "number") return String(first);
  }
  return undefined;
}
