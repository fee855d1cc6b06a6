import {
  defaultStoreFolder,
  type Row,
  type SpanFilter,
  type SpanGroup,
  spanGroups,
  SpanQuery,
  type SpanStats,
} from "@octavo/tracing/store";
import { OctavoError } from "@octavo/protocol/errors";
import { given, inGroup, option, type ResolvedOptions } from "@octavo/protocol/options";
import { defineCommand } from "../command.js";
import { duration, past } from "../options/times.js";
import { printable, type TextColumn, textTable } from "@octavo/report/text-table";

const storeRows = {
  store: option.text("--store <folder>", "where the spans are", {
    default: defaultStoreFolder(),
    defaultText: "that of octavo serve --trace-store auto",
  }),
};

const jsonRow = {
  json: option.toggle("--json", "print one JSON object per line"),
};

const filterRows = {
  ...storeRows,
  ...inGroup("Spans", {
    sinceMs: option.of(past, "--since <time>", "spans that began after: a date, or a time span such as 24h"),
    untilMs: option.of(past, "--until <time>", "spans that began before"),
    model: option.text("--model <name>", "of one model"),
    tenant: option.text("--tenant <name>", "of one tenant"),
    operation: option.text("--operation <name>", "chat, text_completion, embeddings or rerank"),
    outcome: option.choice(
      ["ok", "error", "aborted", "stopped", "abandoned"],
      "--outcome <kind>",
      "how they ended",
    ),
    side: option.choice(["client", "server"], "--side <side>", "which side recorded them"),
  }),
};

function filterOf(flags: ResolvedOptions<typeof filterRows>): SpanFilter {
  const { sinceMs, untilMs, model, tenant, operation, outcome, side } = flags;
  return given({ sinceMs, untilMs, model, tenant, operation, outcome, side });
}

const text =
  (name: string) =>
  (row: Row): string | null => {
    const cell = row[name];
    return cell === null || cell === undefined ? null : String(cell);
  };
const number =
  (name: string) =>
  (row: Row): number | null => {
    const cell = row[name];
    return typeof cell === "number" ? cell : null;
  };

const listColumns: readonly TextColumn<Row>[] = [
  { head: "time", of: (row) => isoTime(row["start_ms"]) },
  { head: "trace", of: (row) => text("trace_id")(row)?.slice(0, 12) },
  { head: "operation", of: text("operation") },
  { head: "model", of: text("model") },
  { head: "tenant", of: text("tenant") },
  { head: "outcome", of: (row) => text("error_type")(row) ?? text("outcome")(row) },
  { head: "in", of: number("input_tokens") },
  { head: "out", of: number("output_tokens") },
  { head: "queue ms", of: number("queue_ms") },
  { head: "ttft ms", of: number("ttft_ms") },
  { head: "gap p99 ms", of: number("gap_p99_ms") },
  { head: "total ms", of: number("duration_ms") },
  { head: "slow because", of: (row) => text("slowest_gap_cause")(row) ?? text("first_token_cause")(row) },
];

/** `octavo traces list` */
export const tracesListCommand = defineCommand({
  options: {
    ...filterRows,
    limit: option.integer("--limit <n>", "number of spans at most", { min: 1, max: 100_000, default: 20 }),
    slowest: option.toggle("--slowest", "slowest first token first instead"),
    ...jsonRow,
  },
  async run(flags) {
    using query = await SpanQuery.open(flags.store);
    const rows = await query.list(filterOf(flags), { limit: flags.limit, slowest: flags.slowest });
    print(flags, rows, () => textTable(rows, listColumns));
  },
});

/** `octavo traces show ID` */
export const tracesShowCommand = defineCommand({
  arguments: { "<id>": "of a trace (or its first digits), span, request or answer" },
  options: { ...storeRows, ...jsonRow },
  async run(flags, id: string) {
    using query = await SpanQuery.open(flags.store);
    const rows = await query.find(id);
    if (rows.length === 0)
      throw new OctavoError("not_found", `there is no span of ${JSON.stringify(id)} in ${flags.store}`);
    print(flags, rows, () => rows.map(spanText).join("\n"));
  },
});

/** `octavo traces stats` */
export const tracesStatsCommand = defineCommand({
  options: {
    ...filterRows,
    bucketMs: option.of(duration, "--bucket <time>", "group by time in steps of this length, e.g. 5m"),
    by: option.choice(spanGroups, "--by <field>", "group by a field"),
    ...jsonRow,
  },
  async run(flags) {
    using query = await SpanQuery.open(flags.store);
    const { bucketMs, by } = flags;
    const rows = await query.stats(filterOf(flags), given({ bucketMs, by }));
    print(flags, rows, () => textTable(rows, statsColumns(bucketMs !== undefined, by)));
  },
});

function statsColumns(hasBuckets: boolean, by: SpanGroup | undefined): readonly TextColumn<SpanStats>[] {
  return [
    ...(hasBuckets ? [{ head: "from", of: ({ bucketMs }: SpanStats) => isoTime(bucketMs) }] : []),
    ...(by === undefined ? [] : [{ head: by, of: ({ group }: SpanStats) => group }]),
    { head: "spans", of: ({ count }) => count },
    { head: "errors", of: ({ errors }) => errors },
    { head: "tokens in", of: ({ inputTokens }) => inputTokens },
    { head: "tokens out", of: ({ outputTokens }) => outputTokens },
    { head: "cache hits", of: ({ cacheHitRatio }) => cacheHitRatio },
    { head: "ttft p50", of: ({ ttftMs }) => ttftMs.p50 },
    { head: "p95", of: ({ ttftMs }) => ttftMs.p95 },
    { head: "p99 ms", of: ({ ttftMs }) => ttftMs.p99 },
    { head: "gap p50", of: ({ gapMs }) => gapMs.p50 },
    { head: "p99 ms", of: ({ gapMs }) => gapMs.p99 },
    { head: "total p50", of: ({ durationMs }) => durationMs.p50 },
    { head: "p99 ms", of: ({ durationMs }) => durationMs.p99 },
  ];
}

/** `octavo traces export FILE` */
export const tracesExportCommand = defineCommand({
  arguments: { "<file>": "file to write" },
  options: filterRows,
  async run(flags, file: string) {
    using query = await SpanQuery.open(flags.store);
    const spans = await query.exportParquet(filterOf(flags), file);
    process.stdout.write(`${spans} spans in ${file}\n`);
  },
});

function print({ json }: { readonly json: boolean }, rows: readonly object[], asText: () => string): void {
  if (json) for (const row of rows) process.stdout.write(`${JSON.stringify(row)}\n`);
  else process.stdout.write(rows.length === 0 ? "no spans\n" : asText());
}

function isoTime(milliseconds: unknown): string | null {
  return typeof milliseconds === "number"
    ? new Date(milliseconds).toISOString().replace("T", " ").slice(0, 23)
    : null;
}

function spanText(row: Row): string {
  const facts = Object.entries(row).filter(([, value]) => value !== null);
  const width = Math.max(...facts.map(([name]) => name.length));
  return facts
    .map(([name, value]) => {
      const shown = name === "start_ms" ? (isoTime(value) ?? "") : String(value);
      return `${name.padEnd(width)}  ${printable(shown)}\n`;
    })
    .join("");
}
