/** Facts of spans by which usage is grouped. */
export type UsageGroup = "feature" | "tenant" | "model";
export const usageGroups: readonly UsageGroup[] = ["feature", "tenant", "model"];

/** What the spans that a server made of a group's requests took, and how their traces ended. */
export interface SpanUsage {
  /** Null for spans that lack the fact. */
  readonly group: string | null;
  readonly requests: number;
  readonly computeSeconds: number;
  readonly inputTokens: number;
  readonly cachedTokens: number;
  readonly outputTokens: number;
  readonly traces: number;
  /** Successful ones among these, by a verdict on the trace or, without one, by how its last request ended. */
  readonly successfulTraces: number;
}

/** Period they cover: when the first began and the last ended, ms since 1970. */
export interface UsageSpan {
  readonly fromMs: number;
  readonly toMs: number;
}

/** Verdicts that were given from outside, by the id of a trace, of an answer or of a request. */
export type Verdicts = ReadonlyMap<string, boolean>;

/** More do not fit into a question. */
export const mostVerdicts = 100_000;

const sums = [
  "count(*) AS requests",
  "coalesce(sum(kernel_ms), 0) / 1000 AS compute_seconds",
  "coalesce(sum(input_tokens), 0) AS input_tokens",
  "coalesce(sum(cached_tokens), 0) AS cached_tokens",
  "coalesce(sum(output_tokens), 0) AS output_tokens",
].join(", ");

/** Use by group, of the spans that `condition` leaves; `verdicts` is a table `(id, passed)`. */
export function usageQuery(by: UsageGroup, condition: string, verdicts: string): string {
  return `SELECT ${by} AS grp, ${sums}, count(DISTINCT trace_id) AS traces,
    count(DISTINCT trace_id) FILTER (trace_passed) AS successful_traces
    FROM (
      SELECT calls.*, coalesce(bool_and(passed) OVER (PARTITION BY ${by}, trace_id),
        last_value(outcome = 'ok') OVER (PARTITION BY ${by}, trace_id ORDER BY start_ms
          ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)) AS trace_passed
      FROM (
        SELECT spans.*, coalesce(t.passed AND coalesce(a.passed, true) AND coalesce(r.passed, true),
          a.passed AND coalesce(r.passed, true), r.passed) AS passed
        FROM spans
        LEFT JOIN (${verdicts}) t ON t.id = trace_id
        LEFT JOIN (${verdicts}) a ON a.id = response_id
        LEFT JOIN (${verdicts}) r ON r.id = engine_request_id
        ${condition}
      ) calls
    ) judged
    GROUP BY grp ORDER BY compute_seconds DESC, grp`;
}

export function usageOf(row: Readonly<Record<string, unknown>>): SpanUsage {
  const { grp } = row;
  return {
    group: typeof grp === "string" ? grp : null,
    requests: Number(row["requests"]),
    computeSeconds: Number(row["compute_seconds"]),
    inputTokens: Number(row["input_tokens"]),
    cachedTokens: Number(row["cached_tokens"]),
    outputTokens: Number(row["output_tokens"]),
    traces: Number(row["traces"]),
    successfulTraces: Number(row["successful_traces"]),
  };
}
