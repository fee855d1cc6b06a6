import type { LedgerEntry } from "../exchange/ledger-entry.js";

/** Under which names an answer carries its account. The second are those of Agent Command Center's clients. */
export const headerPrefixes = ["x-octavo-", "x-agentcc-"] as const;
export type HeaderPrefix = (typeof headerPrefixes)[number];

interface HeaderRow {
  readonly name: string;
  /** Its name under `x-agentcc-`, where that differs. */
  readonly alias?: string;
  /** Undefined while it is not known. */
  readonly value: (entry: LedgerEntry) => string | undefined;
  /** Only known at the end: in the trailers of a stream, and in its last event. */
  readonly isLate?: boolean;
}

/** What every answer says of itself, errors and streams included. Headers, trailers and the last event derive from these rows. */
export const headerRows: readonly HeaderRow[] = [
  { name: "request-id", value: ({ requestId }) => requestId },
  { name: "trace-id", value: ({ traceId }) => traceId },
  { name: "target", alias: "provider", value: (entry) => latestAttempt(entry)?.target ?? "none" },
  { name: "model-used", value: (entry) => latestAttempt(entry)?.model ?? "none" },
  { name: "routing-strategy", value: ({ strategy }) => strategy ?? "none" },
  { name: "cache", value: ({ cache }) => cache },
  { name: "fallback", alias: "fallback-used", value: fallbackOf },
  { name: "guardrail", alias: "guardrail-triggered", value: guardrailOf },
  {
    name: "latency-ms",
    isLate: true,
    value: ({ durationMs }) =>
      durationMs === undefined ? undefined : String(Math.round(durationMs * 10) / 10),
  },
  { name: "cost", isLate: true, value: ({ costUsd }) => formatDollars(costUsd) },
];

/** Full names, made once. */
const namedRows = headerRows.map((row) => ({
  row,
  names: {
    "x-octavo-": nameUnder(row, "x-octavo-"),
    "x-agentcc-": nameUnder(row, "x-agentcc-"),
  } satisfies Record<HeaderPrefix, string>,
}));

function latestAttempt({ winner, attempts }: LedgerEntry) {
  return winner ?? attempts.at(-1);
}

function fallbackOf({ winner, attempts }: LedgerEntry): string {
  const reason = (winner ?? attempts.at(-1))?.reason ?? "first";
  return reason === "first" ? "false" : reason;
}

function guardrailOf({ guardrails }: LedgerEntry): string {
  return guardrails.length === 0
    ? "none"
    : guardrails.map(({ rule, action }) => `${rule}:${action}`).join(",");
}

/** Without an exponent, and without trailing zeros: `0.000012`. */
export function formatDollars(dollars: number): string {
  return dollars === 0 ? "0" : dollars.toFixed(9).replace(/\.?0+$/, "") || "0";
}

/** The answer's headers as names and values in turn; late ones only where they are known. */
export function headersOf(
  entry: LedgerEntry,
  prefixes: readonly HeaderPrefix[],
  withLate: boolean,
): string[] {
  const headers: string[] = [];
  for (const { row, names } of namedRows) {
    if (row.isLate === true && !withLate) continue;
    const value = row.value(entry);
    if (value === undefined) continue;
    for (const prefix of prefixes) headers.push(names[prefix], value);
  }
  return headers;
}

/** Trailers of a stream: what its headers could not say, and what changed since. */
export function trailersOf(
  entry: LedgerEntry,
  prefixes: readonly HeaderPrefix[],
): Readonly<Record<string, string>> {
  const headers = headersOf(entry, prefixes, true);
  const trailers: Record<string, string> = {};
  for (let at = 0; at < headers.length; at += 2) trailers[headers[at] ?? ""] = headers[at + 1] ?? "";
  return trailers;
}

export function trailerNames(prefixes: readonly HeaderPrefix[]): string {
  return headerRows.flatMap((row) => prefixes.map((prefix) => nameUnder(row, prefix))).join(", ");
}

/** The account as the field `octavo` of a stream's last event. */
export function ledgerFields(entry: LedgerEntry): Readonly<Record<string, string | number>> {
  return Object.fromEntries(
    headerRows.flatMap((row) => {
      const value = row.value(entry);
      if (value === undefined) return [];
      return [[row.name.replaceAll("-", "_"), row.isLate === true ? Number(value) : value]];
    }),
  );
}

function nameUnder({ name, alias }: HeaderRow, prefix: HeaderPrefix): string {
  return prefix + (prefix === "x-agentcc-" ? (alias ?? name) : name);
}
