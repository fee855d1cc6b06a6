import {
  type Fact,
  factNames,
  type Observation,
  observationOf,
  recordedContent,
  type SpanRecord,
} from "@octavo/evals";
import {
  type CallFinding,
  failedAttemptText,
  isVerified,
  type NewFinding,
  type Quote,
  type TraceTexts,
  withId,
} from "./finding.js";

/** From where on a call counts as slow, or badly answered. */
export interface FindingLimits {
  /** Time to first token, in ms. Default 1000. */
  readonly firstTokenMs?: number;
  /** The longest gap between tokens, in ms. Default 500. */
  readonly gapMs?: number;
  /** Scores below are findings. Default 0.5. */
  readonly score?: number;
}

/** Longest quote. */
const excerptCharacters = 240;

interface Reading {
  readonly seen: Observation;
  readonly texts: TraceTexts;
  readonly limits: Required<FindingLimits>;
  /** The value of a fact in the trace's own words. */
  readonly quote: (fact: Fact) => Quote | undefined;
  /** How what was asked or answered begins, where the trace keeps it. */
  readonly excerpt: (field: "input" | "output") => Quote | undefined;
}

type Part = Pick<NewFinding, "kind" | "cause" | "description" | "target" | "route"> & {
  readonly quotes: readonly (Quote | undefined)[];
  readonly lostMs?: number;
};

/** What one call can be found guilty of, each from evidence in its span alone. */
const rules: readonly ((reading: Reading) => readonly Part[])[] = [
  function failed({ seen: { failureCode }, quote }) {
    if (failureCode === undefined) return [];
    const [type, message] = [quote("failure"), quote("failureMessage")];
    const description =
      message === undefined ? `failed with ${failureCode}` : `failed with ${failureCode}: ${message.text}`;
    return [
      {
        kind: "request",
        cause: failureCode,
        description,
        quotes: [type ?? { field: "status", text: "error" }, message],
      },
    ];
  },
  function failedAttempt({ quote }) {
    const [target, outcome] = [quote("failedTarget"), quote("failedOutcome")];
    if (target === undefined || outcome === undefined) return [];
    return [
      {
        kind: "gateway",
        cause: outcome.text,
        description: failedAttemptText(target.text, outcome.text),
        quotes: [target, outcome],
        target: target.text,
        route: quote("route")?.text,
      },
    ];
  },
  function lateFirstToken({ seen: { firstTokenMs }, limits, quote }) {
    if (firstTokenMs === undefined || firstTokenMs < limits.firstTokenMs) return [];
    const blamed = quote("firstTokenCause");
    const cause = blamed?.text ?? "unexplained";
    return [
      {
        kind: "serving",
        cause,
        description: `the first token was late, mostly because of ${cause}`,
        quotes: [quote("firstTokenMs"), blamed],
        lostMs: firstTokenMs,
      },
    ];
  },
  function longGap({ seen: { slowGaps, gapSummary }, limits, quote }) {
    const [slowest] = slowGaps ?? [];
    const ms = slowest?.ms ?? gapSummary?.maxMs;
    if (ms === undefined || ms < limits.gapMs) return [];
    const cause = slowest?.cause ?? "unexplained";
    return [
      {
        kind: "serving",
        cause,
        description: `the stream paused between tokens, mostly because of ${cause}`,
        quotes: [quote("slowGapMs") ?? quote("gapMaxMs"), quote("slowGapCause")],
        lostMs: ms,
      },
    ];
  },
  function cutOff({ seen: { finishReason }, quote, excerpt }) {
    if (finishReason !== "length") return [];
    return [
      {
        kind: "answer",
        cause: "cut_off",
        description: "the answer was cut off at its token limit",
        quotes: [quote("finishReason"), excerpt("input")],
      },
    ];
  },
  function badlyScored({ seen: { scores }, limits, excerpt }) {
    const output = excerpt("output");
    return Object.entries(scores).flatMap(([evaluator, score]) => {
      if (score === null || score >= limits.score) return [];
      const quotes = [{ field: `score ${evaluator}`, text: String(score) }, output, excerpt("input")];
      const description = output?.text ?? `scored ${score}`;
      return [{ kind: "answer", cause: evaluator, description, quotes } as const];
    });
  },
];

/**
 * Findings of one call, and how many were dropped because a quote does not stand in the trace: none, unless a rule is wrong, and
 * a dropped one is never shown.
 */
export function findingsOfSpan(
  span: SpanRecord,
  { firstTokenMs = 1000, gapMs = 500, score = 0.5 }: FindingLimits = {},
): { readonly findings: readonly CallFinding[]; readonly unverified: number } {
  const seen = observationOf(span, "");
  const texts = textsOf(span, seen);
  const quote = (fact: Fact): Quote | undefined => {
    for (const name of factNames[fact]) {
      const field = typeof name === "string" ? name : name.seconds;
      const text = texts.get(field);
      if (text !== undefined && text !== "") return { field, text: text.slice(0, excerptCharacters) };
    }
    return undefined;
  };
  const excerpt = (field: "input" | "output"): Quote | undefined => {
    const text = texts.get(field)?.slice(0, excerptCharacters);
    return text === undefined || text === "" ? undefined : { field, text };
  };
  const reading: Reading = { seen, texts, limits: { firstTokenMs, gapMs, score }, quote, excerpt };
  const model = quote("model")?.text;
  const found = rules
    .flatMap((rule) => rule(reading))
    .map(({ quotes, lostMs, ...part }): NewFinding => ({
      ...part,
      quotes: quotes.filter((each) => each !== undefined),
      traceId: span.traceId ?? seen.caseId,
      spanId: span.spanId,
      epochMs: span.startEpochMs,
      tenant: seen.tenant,
      replica: seen.replica,
      model,
      lostMs,
      batchSize: seen.batchSize,
    }));
  const verified = found.filter((finding) => isVerified(finding, texts));
  return { findings: verified.map(withId), unverified: found.length - verified.length };
}

function textsOf(span: SpanRecord, seen: Observation): TraceTexts {
  const texts = new Map<string, string>();
  for (const [name, value] of span.facts) {
    const first: unknown = Array.isArray(value) ? value[0] : value;
    texts.set(name, typeof first === "string" ? first : (JSON.stringify(first) ?? ""));
  }
  if (span.isError) texts.set("status", "error");
  for (const [evaluator, score] of Object.entries(seen.scores))
    texts.set(`score ${evaluator}`, String(score));
  const content = recordedContent(span.facts);
  const output = content?.answered[0]?.text ?? seen.output;
  if (output !== undefined) texts.set("output", output);
  const input = content?.asked.findLast(({ role }) => role === "user")?.text;
  if (input !== undefined) texts.set("input", input);
  return texts;
}
