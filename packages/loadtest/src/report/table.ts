import type { Distribution, LoadEstimate } from "../statistics/quantiles.js";
import type { LoadSummary } from "./summary.js";

/** The run as text: totals first, then one line per latency with p50, p90, p95, p99 and their 95 % intervals. */
export function renderLoadSummary(summary: LoadSummary, title: string): string {
  const failures = Object.entries(summary.failures).map(([kind, count]) => `${count} ${kind}`);
  const totals: readonly (readonly [string, string])[] = [
    ["requests completed", `${summary.completed} of ${summary.requests} (${percent(summary.successRate)})`],
    ["failed", failures.length === 0 ? "none" : failures.join(", ")],
    [
      "duration",
      `${summary.durationSeconds.toFixed(2)} s, at most ${summary.maxConcurrency} requests at once`,
    ],
    ["tokens in", `${summary.promptTokens} (${summary.cachedTokens} from the prefix cache)`],
    ["tokens out", String(summary.outputTokens)],
    ["requests/s", number(summary.requestsPerSecond)],
    ["output tokens/s", number(summary.outputTokensPerSecond)],
    ["total tokens/s", number(summary.totalTokensPerSecond)],
  ];
  const goodput = summary.goodput;
  const lines = [
    title,
    "",
    ...aligned([
      ...totals,
      ...(goodput
        ? [
            [
              "goodput",
              `${number(goodput.requestsPerSecond)} requests/s (${percent(goodput.share)})`,
            ] as const,
          ]
        : []),
    ]),
    "",
    ...latencies([
      ["time to first token, ms", summary.ttftMs],
      ["inter-token gap, ms", summary.interTokenMs],
      ["longest gap of a request, ms", summary.maxGapMs],
      ["time per output token, ms", summary.tpotMs],
      ["end to end, ms", summary.e2eMs],
      ["sent late by, ms", summary.sendDelayMs],
    ]),
    ...Object.entries(summary.failureExamples).map(([kind, message]) => `\n${kind}, for example: ${message}`),
  ];
  return `${lines.join("\n")}\n`;
}

function aligned(rows: readonly (readonly [string, string])[]): string[] {
  const width = Math.max(...rows.map(([label]) => label.length));
  return rows.map(([label, value]) => `${label.padEnd(width)}  ${value}`);
}

function latencies(rows: readonly (readonly [string, Distribution | undefined])[]): string[] {
  const header = ["", "mean", "p50", "p90", "p95", "p99", "max"];
  const body = rows
    .filter((row): row is readonly [string, Distribution] => row[1] !== undefined)
    .flatMap(([label, d]) => {
      const estimates = [d.mean, d.p50, d.p90, d.p95, d.p99];
      return [
        [label, ...estimates.map((e) => number(e.value)), number(d.max)],
        ["", ...estimates.map(interval), ""],
      ];
    });
  const table = [header, ...body];
  const widths = header.map((_, column) => Math.max(...table.map((row) => (row[column] ?? "").length)));
  return table
    .map((row) =>
      row
        .map((cell, column) =>
          column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0),
        )
        .join("  "),
    )
    .filter((line) => line.trim() !== "");
}

function interval(estimate: LoadEstimate): string {
  return estimate.interval ? `[${number(estimate.interval[0])}, ${number(estimate.interval[1])}]` : "";
}

function number(value: number): string {
  if (!Number.isFinite(value)) return "-";
  return value >= 1000 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
}

function percent(estimate: LoadEstimate): string {
  const show = (value: number) => `${(100 * value).toFixed(1)} %`;
  return estimate.interval
    ? `${show(estimate.value)}, 95 % interval ${show(estimate.interval[0])} to ${show(estimate.interval[1])}`
    : show(estimate.value);
}
