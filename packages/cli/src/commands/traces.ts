import {
  defaultStoreFolder,
  type Row,
  type SpanFilter,
  type SpanGroup,
  spanGroups,
  SpanQuery,
  type SpanStats,
} from "@octavo/tracing/store";
import { OctavoError } from "@octavo/protocol";
import { Command, Option } from "commander";
import { parseCount } from "../options/parse.js";
import { parseDuration, parsePast } from "../options/parse-time.js";
import { printable, type TextColumn, textTable } from "../output/text-table.js";

interface StoreFlags {
  readonly store: string;
  readonly json?: boolean;
}

interface FilterFlags extends StoreFlags {
  readonly since?: number;
  readonly until?: number;
  readonly model?: string;
  readonly tenant?: string;
  readonly operation?: string;
  readonly outcome?: string;
  readonly side?: "client" | "server";
}

/** `octavo traces`: questions to a local store of spans. */
export function tracesCommand(): Command {
  return new Command("traces")
    .description("ask the spans that octavo serve --trace-store kept")
    .addCommand(listCommand())
    .addCommand(showCommand())
    .addCommand(statsCommand())
    .addCommand(exportCommand());
}

function storeFlags(command: Command): Command {
  return command.option("--store <folder>", "where the spans are", defaultStoreFolder());
}

function filterFlags(command: Command): Command {
  return storeFlags(command)
    .option("--since <time>", "spans that began after: a date, or a time span such as 24h", (text) =>
      parsePast(text),
    )
    .option("--until <time>", "spans that began before", (text) => parsePast(text))
    .option("--model <name>", "of one model")
    .option("--tenant <name>", "of one tenant")
    .option("--operation <name>", "chat, text_completion, embeddings or rerank")
    .addOption(
      new Option("--outcome <kind>", "how they ended").choices([
        "ok",
        "error",
        "aborted",
        "stopped",
        "abandoned",
      ]),
    )
    .addOption(new Option("--side <side>", "who made them").choices(["client", "server"]));
}

function filterOf(flags: FilterFlags): SpanFilter {
  const { since, until, model, tenant, operation, outcome, side } = flags;
  return {
    ...(since === undefined ? {} : { sinceMs: since }),
    ...(until === undefined ? {} : { untilMs: until }),
    ...(model === undefined ? {} : { model }),
    ...(tenant === undefined ? {} : { tenant }),
    ...(operation === undefined ? {} : { operation }),
    ...(outcome === undefined ? {} : { outcome }),
    ...(side === undefined ? {} : { side }),
  };
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

function listCommand(): Command {
  return filterFlags(new Command("list").description("spans, newest first"))
    .option("--limit <n>", "at most so many", parseCount(1, 100_000), 20)
    .option("--slowest", "slowest first token first instead")
    .option("--json", "one JSON object per line")
    .action(async (flags: FilterFlags & { readonly limit: number; readonly slowest?: boolean }) => {
      using query = await SpanQuery.open(flags.store);
      const rows = await query.list(filterOf(flags), {
        limit: flags.limit,
        slowest: flags.slowest === true,
      });
      print(flags, rows, () => textTable(rows, listColumns));
    });
}

function showCommand(): Command {
  return storeFlags(new Command("show").description("everything known of a trace or a request"))
    .argument("<id>", "of a trace (or its first digits), span, request or answer")
    .option("--json", "one JSON object per line")
    .action(async (id: string, flags: StoreFlags) => {
      using query = await SpanQuery.open(flags.store);
      const rows = await query.find(id);
      if (rows.length === 0)
        throw new OctavoError("not_found", `there is no span of ${JSON.stringify(id)} in ${flags.store}`);
      print(flags, rows, () => rows.map(spanText).join("\n"));
    });
}

function statsCommand(): Command {
  return filterFlags(new Command("stats").description("counts, tokens and percentiles, by time and by group"))
    .option("--bucket <time>", "split time into such spans, e.g. 5m", parseDuration)
    .addOption(new Option("--by <fact>", "split by a fact").choices(spanGroups))
    .option("--json", "one JSON object per line")
    .action(async (flags: FilterFlags & { readonly bucket?: number; readonly by?: SpanGroup }) => {
      using query = await SpanQuery.open(flags.store);
      const { bucket, by } = flags;
      const rows = await query.stats(filterOf(flags), {
        ...(bucket === undefined ? {} : { bucketMs: bucket }),
        ...(by === undefined ? {} : { by }),
      });
      print(flags, rows, () => textTable(rows, statsColumns(bucket !== undefined, by)));
    });
}

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

function exportCommand(): Command {
  return filterFlags(new Command("export").description("write spans as one Parquet file"))
    .argument("<file>", "file to write")
    .action(async (file: string, flags: FilterFlags) => {
      using query = await SpanQuery.open(flags.store);
      const spans = await query.exportParquet(filterOf(flags), file);
      process.stdout.write(`${spans} spans in ${file}\n`);
    });
}

function print(flags: StoreFlags, rows: readonly object[], asText: () => string): void {
  if (flags.json === true) {
    for (const row of rows) process.stdout.write(`${JSON.stringify(row)}\n`);
  } else process.stdout.write(rows.length === 0 ? "no spans\n" : asText());
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
