import { open, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { makeFolder } from "@octavo/protocol/make-folder";
import { OctavoError, systemProblem } from "@octavo/protocol";
import { columns } from "./columns.js";
import { listSegments, type Segment } from "./segments.js";
import {
  mostVerdicts,
  type SpanUsage,
  type UsageGroup,
  usageGroups,
  usageOf,
  usageQuery,
  type UsageSpan,
  type Verdicts,
} from "./span-usage.js";

/** Which spans. Times in ms since 1970; `untilMs` itself is out. */
export interface SpanFilter {
  readonly sinceMs?: number;
  readonly untilMs?: number;
  readonly model?: string;
  readonly tenant?: string;
  readonly feature?: string;
  readonly operation?: string;
  /** `ok`, `error`, `aborted`, `stopped` or `abandoned`. */
  readonly outcome?: string;
  readonly side?: "client" | "server";
}

export type SpanGroup =
  | "model"
  | "tenant"
  | "feature"
  | "operation"
  | "outcome"
  | "first_token_cause"
  | "slowest_gap_cause";
export const spanGroups: readonly SpanGroup[] = [
  "model",
  "tenant",
  "feature",
  "operation",
  "outcome",
  "first_token_cause",
  "slowest_gap_cause",
];

/** Most groups in an answer to `stats`; no table is that long. */
const mostGroups = 10_000;

export type Row = Readonly<Record<string, string | number | boolean | null>>;

/** Counts, sums and percentiles of the spans in a bucket of time and a group. */
export interface SpanStats {
  /** Start of the bucket, ms since 1970; undefined where time is not split. */
  readonly bucketMs: number | undefined;
  /** Undefined where spans are not grouped; null for spans that lack the fact. */
  readonly group: string | null | undefined;
  readonly count: number;
  readonly errors: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cacheHitRatio: number | null;
  readonly ttftMs: Percentiles;
  readonly gapMs: Percentiles;
  readonly durationMs: Percentiles;
}

export interface Percentiles {
  readonly p50: number | null;
  readonly p95: number | null;
  readonly p99: number | null;
}

interface Connection {
  runAndReadAll(sql: string): Promise<{ getRowObjectsJS(): readonly Record<string, unknown>[] }>;
  closeSync(): void;
}

/** Answers questions about the spans of a store, while others write to it. */
export class SpanQuery implements Disposable {
  readonly #folder: string;
  readonly #connection: Connection;

  private constructor(folder: string, connection: Connection) {
    this.#folder = folder;
    this.#connection = connection;
  }

  /** Throws `native_unavailable` where DuckDB, an optional dependency, is not installed. */
  static async open(folder: string): Promise<SpanQuery> {
    const { DuckDBInstance } = await import("@duckdb/node-api").catch((cause: unknown) => {
      throw new OctavoError(
        "native_unavailable",
        "reading a trace store needs DuckDB; install it with: npm install @duckdb/node-api",
        { cause },
      );
    });
    const instance = await DuckDBInstance.create(":memory:", {
      autoinstall_known_extensions: "false",
      autoload_known_extensions: "false",
    });
    return new SpanQuery(folder, await instance.connect());
  }

  /** Newest first, or slowest first token first. */
  list(
    filter: SpanFilter,
    options: { readonly limit: number; readonly slowest?: boolean },
  ): Promise<readonly Row[]> {
    const order = options.slowest === true ? "coalesce(ttft_ms, duration_ms) DESC" : "start_ms DESC";
    return this.#select(
      `SELECT * FROM spans ${where(filter)} ORDER BY ${order} LIMIT ${count(options.limit)}`,
    );
  }

  /** Every span of a trace, by its id or the beginning of it, or by an id of the request or the answer; oldest first. */
  find(id: string): Promise<readonly Row[]> {
    const value = literal(id);
    const prefix = /^[0-9a-f]{4,32}$/.test(id) ? `starts_with(trace_id, ${value}) OR ` : "";
    return this.#select(
      `SELECT * FROM spans WHERE ${prefix}span_id = ${value} OR request_id = ${value} OR engine_request_id = ${value} OR response_id = ${value} ORDER BY start_ms LIMIT 1000`,
    );
  }

  async stats(
    filter: SpanFilter,
    options: { readonly bucketMs?: number; readonly by?: SpanGroup; readonly limit?: number },
  ): Promise<readonly SpanStats[]> {
    const { bucketMs, by, limit = mostGroups + 1 } = options;
    if (bucketMs !== undefined && !(bucketMs >= 1))
      throw new OctavoError("invalid_option", `bucket: expected a time, got ${bucketMs} ms`, {
        param: "bucket",
      });
    if (by !== undefined && !spanGroups.includes(by))
      throw new OctavoError("invalid_option", `by: expected one of ${spanGroups.join(", ")}`, {
        param: "by",
      });
    const keys = [
      ...(bucketMs === undefined ? [] : [`floor(start_ms / ${bucketMs}) * ${bucketMs} AS bucket`]),
      ...(by === undefined ? [] : [`${by} AS grp`]),
    ];
    const groups = [...(bucketMs === undefined ? [] : ["bucket"]), ...(by === undefined ? [] : ["grp"])];
    const grouping =
      groups.length === 0 ? "" : `GROUP BY ${groups.join(", ")} ORDER BY ${groups.join(", ")} NULLS LAST`;
    const rows = await this.#select(
      `SELECT ${[...keys, ...measures].join(", ")} FROM spans ${where(filter)} ${grouping} LIMIT ${count(limit)}`,
    );
    if (options.limit === undefined && rows.length > mostGroups) {
      throw new OctavoError(
        "invalid_option",
        `bucket: gives more than ${mostGroups} rows; choose longer buckets, or a shorter time`,
        { param: "bucket" },
      );
    }
    return rows.filter(({ count: spans }) => Number(spans) > 0).map((row) => statsOf(row, by !== undefined));
  }

  /** What the requests of servers took, greatest first, and the span of time that they lie in. */
  async usage(
    filter: SpanFilter,
    by: UsageGroup,
    verdicts: Verdicts = new Map(),
  ): Promise<{ readonly groups: readonly SpanUsage[]; readonly span: UsageSpan | undefined }> {
    if (!usageGroups.includes(by))
      throw new OctavoError("invalid_option", `by: expected one of ${usageGroups.join(", ")}`, {
        param: "by",
      });
    if (verdicts.size > mostVerdicts)
      throw new OctavoError(
        "invalid_option",
        `verdicts: ${verdicts.size} are too many for one question, which takes ${mostVerdicts}; ask for shorter times`,
        { param: "verdicts" },
      );
    const condition = where({ ...filter, side: "server" });
    const groups = await this.#select(usageQuery(by, condition, verdictTable(verdicts)));
    const [span] = await this.#select(
      `SELECT min(start_ms) AS from_ms, max(start_ms + duration_ms) AS to_ms FROM spans ${condition}`,
    );
    const fromMs = span?.["from_ms"];
    const toMs = span?.["to_ms"];
    return {
      groups: groups.map(usageOf),
      span: typeof fromMs === "number" && typeof toMs === "number" ? { fromMs, toMs } : undefined,
    };
  }

  /** Writes the spans as one Parquet file; how many they are. */
  async exportParquet(filter: SpanFilter, path: string): Promise<number> {
    const target = literal(path);
    await checkWritable(path);
    const copy = `(SELECT * FROM spans ${where(filter)} ORDER BY start_ms) TO ${target} (FORMAT parquet)`;
    try {
      const rows = await this.#select(copy, "COPY");
      return Number(rows[0]?.["Count"] ?? 0);
    } catch (error) {
      await rm(path, { force: true });
      throw error;
    }
  }

  [Symbol.dispose](): void {
    this.#connection.closeSync();
  }

  /** The segments are looked up again; one that became Parquet in between is looked up once more. */
  async #select(query: string, kind: "SELECT" | "COPY" = "SELECT"): Promise<readonly Row[]> {
    for (let attempt = 1; ; attempt++) {
      const spans = `WITH spans AS (${spansOf(await listSegments(this.#folder))})`;
      const sql = kind === "COPY" ? `COPY (${spans} ${query.slice(1)}` : `${spans} ${query}`;
      try {
        const result = await this.#connection.runAndReadAll(sql);
        return result.getRowObjectsJS().map(plainRow);
      } catch (thrown) {
        const message = thrown instanceof Error ? thrown.message : String(thrown);
        const hasMoved = /No files found|Cannot open file|could not be opened|No such file/i.test(message);
        if (attempt < 3 && hasMoved) continue;
        throw new OctavoError(
          "artifact_invalid",
          `the trace store ${this.#folder} cannot be read: ${message}`,
          {
            cause: thrown,
          },
        );
      }
    }
  }
}

const percentiles = (column: string, name: string): string =>
  `quantile_cont(${column}, [0.5, 0.95, 0.99]) AS ${name}`;

const measures = [
  "count(*) AS count",
  "count(*) FILTER (outcome = 'error') AS errors",
  "coalesce(sum(input_tokens), 0) AS input_tokens",
  "coalesce(sum(output_tokens), 0) AS output_tokens",
  "sum(cached_tokens) / nullif(sum(input_tokens) FILTER (cached_tokens IS NOT NULL), 0) AS cache_hit_ratio",
  percentiles("ttft_ms", "ttft"),
  percentiles("gap_mean_ms", "gap"),
  percentiles("duration_ms", "duration"),
];

function statsOf(row: Readonly<Record<string, unknown>>, isGrouped: boolean): SpanStats {
  const { bucket, grp, cache_hit_ratio: ratio } = row;
  return {
    bucketMs: typeof bucket === "number" ? bucket : undefined,
    group: isGrouped ? (typeof grp === "string" ? grp : null) : undefined,
    count: Number(row["count"]),
    errors: Number(row["errors"]),
    inputTokens: Number(row["input_tokens"]),
    outputTokens: Number(row["output_tokens"]),
    cacheHitRatio: typeof ratio === "number" ? ratio : null,
    ttftMs: percentilesOf(row["ttft"]),
    gapMs: percentilesOf(row["gap"]),
    durationMs: percentilesOf(row["duration"]),
  };
}

function percentilesOf(value: unknown): Percentiles {
  const list: unknown = typeof value === "string" ? JSON.parse(value) : value;
  const at = (index: number): number | null => {
    const item: unknown = Array.isArray(list) ? list[index] : undefined;
    return typeof item === "number" ? item : null;
  };
  return { p50: at(0), p95: at(1), p99: at(2) };
}

/** So that what cannot be written is told from a store that cannot be read. */
async function checkWritable(path: string): Promise<void> {
  try {
    makeFolder(dirname(path));
    await (await open(path, "w")).close();
  } catch (cause) {
    throw new OctavoError("invalid_option", `${path} cannot be written: ${systemProblem(cause)}`, {
      param: "file",
      cause,
    });
  }
}

/** Segments of an older Octavo may lack columns: the first part of the union has them all, and no rows. */
function spansOf(segments: readonly Segment[]): string {
  const paths = (isParquet: boolean): readonly string[] =>
    segments
      .filter((segment) => segment.isParquet === isParquet)
      .map(({ stem }) => literal(withoutPatterns(`${stem}.${isParquet ? "parquet" : "jsonl"}`)));
  const full = paths(true);
  const growing = paths(false);
  const nothing = columns.map(({ name, type }) => `NULL::${type} AS ${name}`).join(", ");
  const sources = [`SELECT ${nothing} WHERE false`];
  if (full.length > 0) sources.push(`SELECT * FROM read_parquet([${full.join(", ")}], union_by_name = true)`);
  if (growing.length > 0) {
    const types = columns.map(({ name, type }) => `${name}: '${type}'`).join(", ");
    sources.push(
      `SELECT * FROM read_json([${growing.join(", ")}], format = 'newline_delimited', ignore_errors = true, maximum_object_size = 67108864, columns = {${types}})`,
    );
  }
  const names = columns.map(({ name }) => name).join(", ");
  // What a crash left of a line is read as a row of nothing.
  return `SELECT ${names} FROM (${sources.join(" UNION ALL BY NAME ")}) WHERE start_ms IS NOT NULL`;
}

function where(filter: SpanFilter): string {
  const { sinceMs, untilMs, model, tenant, feature, operation, outcome, side } = filter;
  const terms: string[] = [];
  if (sinceMs !== undefined) terms.push(`start_ms >= ${time("since", sinceMs)}`);
  if (untilMs !== undefined) terms.push(`start_ms < ${time("until", untilMs)}`);
  for (const [name, value] of Object.entries({ model, tenant, feature, operation, outcome, side })) {
    if (value !== undefined) terms.push(`${name} = ${literal(value)}`);
  }
  return terms.length === 0 ? "" : `WHERE ${terms.join(" AND ")}`;
}

/** DuckDB reads file names as patterns; a list of one character stands for that character. */
function withoutPatterns(path: string): string {
  return path.replaceAll(/[*?[]/g, (character) => `[${character}]`);
}

function verdictTable(verdicts: Verdicts): string {
  if (verdicts.size === 0) return "SELECT NULL::VARCHAR AS id, NULL::BOOLEAN AS passed WHERE false";
  const rows = [...verdicts].map(([id, passed]) => `(${literal(id)}, ${passed})`);
  return `SELECT * FROM (VALUES ${rows.join(", ")}) AS verdicts(id, passed)`;
}

/** DuckDB's strings know no escapes but the doubled quote. */
function literal(text: string): string {
  if (text.includes("\0"))
    throw new OctavoError("invalid_option", "a value must not contain a NUL character", { param: "filter" });
  return `'${text.replaceAll("'", "''")}'`;
}

function time(param: string, value: number): number {
  if (Number.isFinite(value)) return value;
  throw new OctavoError("invalid_option", `${param}: expected a time, got ${value}`, { param });
}

function count(value: number): number {
  if (Number.isSafeInteger(value) && value >= 0) return value;
  throw new OctavoError("invalid_option", `limit: expected a count, got ${value}`, { param: "limit" });
}

function plainRow(row: Readonly<Record<string, unknown>>): Row {
  return Object.fromEntries(
    Object.entries(row).map(([name, value]) => [
      name,
      typeof value === "bigint" ? Number(value) : plainCell(value),
    ]),
  );
}

/** Lists stay text: a row is flat. */
function plainCell(value: unknown): string | number | boolean | null {
  if (value === null || value === undefined) return null;
  if (typeof value === "string" || typeof value === "number" || typeof value === "boolean") return value;
  return JSON.stringify(value);
}
