import { createHash } from "node:crypto";

/** What kind of thing went wrong; findings of different kinds, or different causes, are never one cluster. */
export const findingKinds = ["serving", "request", "answer", "gateway"] as const;
/** Where a finding comes from. */
export type FindingKind = (typeof findingKinds)[number];

/** Words of the trace itself. */
export interface Quote {
  /** The attribute or part of the trace, such as `error.type` or `output`. */
  readonly field: string;
  readonly text: string;
}

/** Something wrong with one call, with quotes that stand in its trace word for word. */
export interface CallFinding {
  /** Digest of its content: the same finding of the same trace always has the same id. */
  readonly id: string;
  readonly kind: FindingKind;
  /** A serving cause, an error code, or the name of an evaluator. */
  readonly cause: string;
  /** One sentence; findings of one cause cluster by it. */
  readonly description: string;
  readonly quotes: readonly Quote[];
  readonly traceId: string;
  /** Of the span that it was found in: spans that are recorded twice are told by it. */
  readonly spanId?: string | undefined;
  readonly epochMs: number;
  readonly tenant: string | undefined;
  readonly replica: string | undefined;
  readonly model: string | undefined;
  /** Milliseconds lost, where the finding is about time. */
  readonly lostMs: number | undefined;
  /** Sequences that ran beside it, on average over its steps. */
  readonly batchSize?: number | undefined;
  /** The gateway's target that it is about, and the route on which it was asked. */
  readonly target?: string | undefined;
  readonly route?: string | undefined;
  /** Attempts that the target had besides, and the share of all its attempts that it failed. */
  readonly outstanding?: number | undefined;
  readonly failedShare?: number | undefined;
}

export type NewFinding = Omit<CallFinding, "id">;

export function withId(finding: NewFinding): CallFinding {
  const { kind, cause, traceId, spanId, description, quotes } = finding;
  const id = createHash("sha256")
    .update(
      JSON.stringify([
        kind,
        cause,
        traceId,
        spanId,
        description,
        quotes.map(({ field, text }) => [field, text]),
      ]),
    )
    .digest("hex")
    .slice(0, 16);
  return { ...finding, id };
}

/** What a trace says, by field: what quotes are checked against. */
export type TraceTexts = ReadonlyMap<string, string>;

/** Whether each quote stands in its field of the trace word for word. A finding without quotes is not verified. */
export function isVerified({ quotes }: NewFinding, texts: TraceTexts): boolean {
  return (
    quotes.length > 0 &&
    quotes.every(({ field, text }) => text !== "" && (texts.get(field)?.includes(text) ?? false))
  );
}

/** A call's attempt that a target of the gateway failed, worded alike wherever it was read. */
export function failedAttemptText(target: string, outcome: string): string {
  return `${target} ended an attempt with ${outcome}`;
}
