import { isRecord, OctavoError } from "@octavo/protocol";
import { Random } from "@octavo/statistics";
import type { LoadDataset, LoadCase } from "./dataset.js";
import { syntheticText } from "./words.js";

export type TraceFormat = "mooncake" | "burstgpt" | "azure";

export interface TraceOptions {
  readonly path: string;
  readonly format: TraceFormat;
  readonly seed: number;
  readonly tokensPerWord: number;
  readonly ignoreEos: boolean;
  /** Longer inputs are cut, so that a trace of a large model can be played to a small one; the run reports how many. */
  readonly maxInputTokens: number;
  readonly maxOutputTokens: number;
}

type TraceFile = Pick<TraceOptions, "path" | "format">;

interface TraceRow {
  readonly atMs: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Mooncake: one id per 512 input tokens; equal ids are equal text, so prefixes are shared as they were. */
  readonly blockIds: readonly number[];
}

/** Input tokens one Mooncake hash id stands for. */
const mooncakeBlockTokens = 512;

/** Recorded arrivals, from 0 on and in order, and lengths. Throws `dataset_invalid` with the line at fault. */
export function traceRows(content: string, options: TraceFile): readonly TraceRow[] {
  const lines = content.split(/\r?\n/).filter((line) => line.trim() !== "");
  const rows =
    options.format === "mooncake"
      ? lines.map((line, i) => mooncakeRow(line, i, options))
      : csvRows(lines, options);
  const usable = rows.filter((row) => row.inputTokens > 0 && row.outputTokens > 0);
  if (usable.length === 0) throw bad(options, 1, "no usable rows");
  const ordered = usable.toSorted((a, b) => a.atMs - b.atMs);
  const startMs = ordered[0]?.atMs ?? 0;
  return ordered.map((row) => ({ ...row, atMs: row.atMs - startMs }));
}

/**
 * Recorded arrivals and lengths, with generated text to match: Mooncake (JSON lines, FAST'25), BurstGPT (CSV), Azure LLM
 * inference traces (CSV). Only lengths, times and sharing come from the trace; none of them carries text.
 */
export function traceDataset(
  content: string,
  options: TraceOptions,
): LoadDataset & { readonly clipped: number } {
  const ordered = traceRows(content, options);
  const clipped = ordered.filter(
    (row) => row.inputTokens > options.maxInputTokens || row.outputTokens > options.maxOutputTokens,
  ).length;
  return {
    clipped,
    cases: (count) => {
      if (count > ordered.length) {
        throw new OctavoError(
          "invalid_option",
          `the trace has ${ordered.length} rows, ${count} were asked for`,
          {
            param: "num-prompts",
          },
        );
      }
      const random = new Random(options.seed);
      return ordered.slice(0, count).map((row): LoadCase => ({
        prompt: promptFor(row, random, options),
        maxTokens: Math.min(row.outputTokens, options.maxOutputTokens),
        ignoreEos: options.ignoreEos,
        atMs: row.atMs,
      }));
    },
  };
}

function promptFor(row: TraceRow, random: Random, options: TraceOptions): string {
  const tokens = Math.min(row.inputTokens, options.maxInputTokens);
  const parts: string[] = [];
  let left = tokens;
  for (const id of row.blockIds) {
    if (left < mooncakeBlockTokens) break;
    parts.push(
      syntheticText(
        new Random(BigInt(options.seed) * 1_000_003n + BigInt(id)),
        mooncakeBlockTokens,
        options.tokensPerWord,
      ),
    );
    left -= mooncakeBlockTokens;
  }
  if (left > 0) parts.push(syntheticText(random, left, options.tokensPerWord));
  return parts.join(" ");
}

function mooncakeRow(line: string, index: number, options: TraceFile): TraceRow {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    throw bad(options, index + 1, "not JSON");
  }
  if (!isRecord(value)) throw bad(options, index + 1, "not an object");
  const [atMs, inputTokens, outputTokens] = [
    value["timestamp"],
    value["input_length"],
    value["output_length"],
  ].map(Number);
  const ids = value["hash_ids"];
  return {
    atMs: finite(atMs, options, index + 1, "timestamp"),
    inputTokens: finite(inputTokens, options, index + 1, "input_length"),
    outputTokens: finite(outputTokens, options, index + 1, "output_length"),
    blockIds: Array.isArray(ids) ? ids.filter((id): id is number => Number.isInteger(id)) : [],
  };
}

const csvColumns = {
  burstgpt: { at: "timestamp", input: "request tokens", output: "response tokens" },
  azure: { at: "timestamp", input: "contexttokens", output: "generatedtokens" },
} as const;

function csvRows(lines: readonly string[], options: TraceFile): TraceRow[] {
  const names = csvColumns[options.format === "azure" ? "azure" : "burstgpt"];
  const header = (lines[0] ?? "").split(",").map((name) => name.trim().toLowerCase());
  const column = (name: string) => {
    const index = header.indexOf(name);
    if (index < 0) throw bad(options, 1, `no column "${name}"`);
    return index;
  };
  const [at, input, output] = [column(names.at), column(names.input), column(names.output)];
  return lines.slice(1).map((line, index) => {
    const cells = line.split(",");
    const number = index + 2;
    const time = (cells[at] ?? "").trim();
    const atMs = options.format === "azure" ? azureTimeMs(time) : Number(time) * 1000;
    return {
      atMs: finite(atMs, options, number, names.at),
      inputTokens: finite(Number(cells[input]), options, number, names.input),
      outputTokens: finite(Number(cells[output]), options, number, names.output),
      blockIds: [],
    };
  });
}

/** "2023-11-16 18:17:03.9799600": seven decimals, no zone. */
function azureTimeMs(time: string): number {
  const match = /^(\d{4}-\d{2}-\d{2})[ T](\d{2}:\d{2}:\d{2})(\.\d+)?(?:Z|\+00:00)?$/.exec(time);
  if (!match) return Number.NaN;
  return Date.parse(`${match[1]}T${match[2]}Z`) + Number(match[3] ?? 0) * 1000;
}

function finite(value: number | undefined, options: TraceFile, line: number, field: string): number {
  if (value === undefined || !Number.isFinite(value) || value < 0)
    throw bad(options, line, `"${field}" is not a number`);
  return value;
}

function bad(options: TraceFile, line: number, what: string): OctavoError {
  return new OctavoError("invalid_option", `${options.path}:${line}: ${what} (${options.format} trace)`, {
    param: "dataset",
  });
}
