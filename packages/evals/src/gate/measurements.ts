import { definedFields } from "@octavo/protocol";
import type { Answer } from "../answers/answer.js";
import type { CaseRow, ScoredAnswer } from "../run/case-row.js";
import { type MeasuredColumn, type RequestMetric, requestMetrics } from "./expectation.js";

/** Dollars per million tokens. */
export interface Prices {
  readonly usdPerMillionInputTokens: number;
  readonly usdPerMillionOutputTokens: number;
  /** Price of cached prompt tokens; undefined: the same as the others. */
  readonly usdPerMillionCachedTokens: number | undefined;
}

/** What is known of an evaluator's work on one target's answers. */
interface ScoreCounts {
  readonly scored: number;
  readonly skipped: number;
  readonly failed: number;
}

/** Cases that one target was asked, and how many of them lack a figure that an answer would have had. */
interface Completeness {
  readonly asked: number;
  /** No answer came. */
  readonly unanswered: number;
  /** The evaluator could not tell. */
  readonly unscored: number;
}

/** Tokens that one target gave in one block of the run, and the time that they took. */
interface ThroughputBlock {
  readonly tokens: number;
  readonly seconds: number;
}

const metrics = Object.keys(requestMetrics) as readonly RequestMetric[];

/**
 * Figures of a run as columns, one entry a case in the order of the rows: a million cases are some numbers each. What was not
 * measured is NaN. Answers that failed have no figures but their failure.
 */
export class Measurements {
  readonly #prices: Prices | undefined;
  readonly #targets = new Map<string, TargetColumns>();
  readonly #clusters: (string | undefined)[] = [];

  constructor(prices?: Prices) {
    this.#prices = prices;
  }

  get numRows(): number {
    return this.#clusters.length;
  }

  /** Cluster of each row; undefined if the case is its own cluster. */
  get clusters(): readonly (string | undefined)[] {
    return this.#clusters;
  }

  get hasClusters(): boolean {
    return this.#clusters.some((cluster) => cluster !== undefined);
  }

  add(row: CaseRow): void {
    for (const [name, scored] of Object.entries(row.answers)) {
      let columns = this.#targets.get(name);
      if (columns === undefined) this.#targets.set(name, (columns = new TargetColumns()));
      columns.add(this.#clusters.length, scored, row.block, this.#prices);
    }
    this.#clusters.push(row.cluster);
  }

  /** Values by row, NaN where there is none; as long as there are rows. */
  column(target: string, column: MeasuredColumn): readonly number[] {
    const columns = this.#targets.get(target);
    const values =
      column.kind === "score" ? columns?.values(column.evaluator) : columns?.metric(column.metric);
    return padded(values ?? [], this.numRows);
  }

  /** 1 where the answer passed, 0 where not, NaN where it was not scored. */
  passes(target: string, evaluator: string): readonly number[] {
    return padded(this.#targets.get(target)?.passes(evaluator) ?? [], this.numRows);
  }

  /** As `passes`, with 0 where no answer came to a case that the evaluator scores: a user without an answer was not served well. */
  passesOfAsked(target: string, evaluator: string): readonly number[] {
    const columns = this.#targets.get(target);
    return this.passes(target, evaluator).map((value, row) =>
      columns?.isUnanswered(row, evaluator) === true ? 0 : value,
    );
  }

  completeness(target: string, column: MeasuredColumn): Completeness {
    const columns = this.#targets.get(target);
    const evaluator = column.kind === "score" ? column.evaluator : undefined;
    const unanswered = this.#clusters.filter((_, row) => columns?.isUnanswered(row, evaluator)).length;
    if (evaluator === undefined) {
      const asked = this.failures(target).filter((value) => !Number.isNaN(value)).length;
      return { asked, unanswered, unscored: 0 };
    }
    const { scored, failed } = this.scoreCounts(target, evaluator);
    return { asked: scored + failed + unanswered, unanswered, unscored: failed };
  }

  /** 1 where the answer failed (with this code), 0 where it came. */
  failures(target: string, code?: string): readonly number[] {
    const columns = this.#targets.get(target);
    return padded(
      Array.from(columns?.failureCodes ?? [], (failure) => {
        if (failure === undefined) return Number.NaN;
        if (failure === "") return 0;
        return code === undefined || failure === code ? 1 : 0;
      }),
      this.numRows,
    );
  }

  throughput(target: string): readonly ThroughputBlock[] {
    return this.#targets.get(target)?.blocks ?? [];
  }

  scoreCounts(target: string, evaluator: string): ScoreCounts {
    return this.#targets.get(target)?.counts(evaluator) ?? { scored: 0, skipped: 0, failed: 0 };
  }
}

class TargetColumns {
  /** "" where the answer came, undefined where the target was not asked. */
  readonly failureCodes: (string | undefined)[] = [];
  readonly #metrics = new Map<RequestMetric, number[]>();
  readonly #values = new Map<string, number[]>();
  readonly #passes = new Map<string, number[]>();
  readonly #counts = new Map<string, { scored: number; skipped: number; failed: number }>();
  /** Rows without an answer that an evaluator would have left out. */
  readonly #leftOut = new Map<string, Set<number>>();
  readonly #blocks = new Map<number, { tokens: number; from: number; to: number }>();

  get blocks(): readonly ThroughputBlock[] {
    return [...this.#blocks.values()]
      .filter(({ from, to }) => to > from)
      .map(({ tokens, from, to }) => ({ tokens, seconds: (to - from) / 1000 }));
  }

  metric(name: RequestMetric): readonly number[] | undefined {
    return this.#metrics.get(name);
  }

  values(evaluator: string): readonly number[] | undefined {
    return this.#values.get(evaluator);
  }

  passes(evaluator: string): readonly number[] | undefined {
    return this.#passes.get(evaluator);
  }

  counts(evaluator: string): ScoreCounts | undefined {
    return this.#counts.get(evaluator);
  }

  /** Whether no answer came where there could have been a figure: of any evaluator, or of a request. */
  isUnanswered(row: number, evaluator: string | undefined): boolean {
    const code = this.failureCodes[row];
    if (code === undefined || code === "") return false;
    return evaluator === undefined || this.#leftOut.get(evaluator)?.has(row) !== true;
  }

  add(index: number, { answer, scores }: ScoredAnswer, block: number, prices: Prices | undefined): void {
    this.failureCodes[index] = answer.failure?.code ?? "";
    this.#addBlock(answer, block);
    if (answer.failure === undefined) {
      const figures = figuresOf(answer, prices);
      for (const name of metrics) {
        const value = figures[name];
        if (value !== undefined && Number.isFinite(value)) put(this.#metrics, name, index, value);
      }
    }
    for (const [name, score] of Object.entries(scores)) {
      const counts = this.#counts.get(name) ?? { scored: 0, skipped: 0, failed: 0 };
      counts[score.status] += 1;
      this.#counts.set(name, counts);
      if (answer.failure !== undefined && score.status === "skipped") {
        const rows = this.#leftOut.get(name) ?? new Set();
        this.#leftOut.set(name, rows.add(index));
      }
      if (score.status !== "scored") continue;
      put(this.#values, name, index, score.value);
      put(this.#passes, name, index, score.passed ? 1 : 0);
    }
  }

  #addBlock({ timing, usage }: Answer, block: number): void {
    const from = timing.sentEpochMs;
    const to = from + timing.durationMs;
    const known = this.#blocks.get(block);
    this.#blocks.set(block, {
      tokens: (known?.tokens ?? 0) + (usage.completionTokens ?? 0),
      from: Math.min(known?.from ?? from, from),
      to: Math.max(known?.to ?? to, to),
    });
  }
}

function figuresOf(
  answer: Answer,
  prices: Prices | undefined,
): Readonly<Partial<Record<RequestMetric, number>>> {
  const { timing, usage, serving } = answer;
  const lateMs = timing.sentEpochMs - timing.scheduledEpochMs;
  const [first] = timing.pieceMs;
  const tokens = usage.completionTokens;
  let maxGap: number | undefined;
  timing.pieceMs.forEach((at, index) => {
    if (index > 0) maxGap = Math.max(maxGap ?? 0, at - (timing.pieceMs[index - 1] ?? at));
  });
  return {
    ...(first === undefined ? {} : { ttft_ms: lateMs + first }),
    duration_ms: lateMs + timing.durationMs,
    ...(first === undefined || tokens === undefined || tokens < 2
      ? {}
      : { tpot_ms: (timing.durationMs - first) / (tokens - 1) }),
    ...(maxGap === undefined ? {} : { max_gap_ms: maxGap }),
    ...(serving === undefined ? {} : { queue_ms: serving.queue_ms }),
    ...definedFields({ prompt_tokens: usage.promptTokens, completion_tokens: tokens }),
    ...(prices === undefined || usage.promptTokens === undefined || tokens === undefined
      ? {}
      : { cost_usd: costOf(usage.promptTokens, usage.cachedTokens ?? 0, tokens, prices) }),
  };
}

function costOf(prompt: number, cached: number, completion: number, prices: Prices): number {
  const input = prices.usdPerMillionInputTokens;
  const cachedPrice = prices.usdPerMillionCachedTokens ?? input;
  return (
    ((prompt - cached) * input + cached * cachedPrice + completion * prices.usdPerMillionOutputTokens) / 1e6
  );
}

/** Columns begin at their first value; earlier rows have none. */
function put<Key>(columns: Map<Key, number[]>, key: Key, index: number, value: number): void {
  let column = columns.get(key);
  if (column === undefined) columns.set(key, (column = []));
  while (column.length < index) column.push(Number.NaN);
  column[index] = value;
}

function padded(values: readonly number[], length: number): readonly number[] {
  return values.length === length
    ? values
    : Array.from({ length }, (_, index) => values[index] ?? Number.NaN);
}
