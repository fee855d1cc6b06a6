import type { CaseRow, Score, ScoredAnswer } from "@octavo/evals";
import { EvaluationExporter, type EvaluationResult, parseTraceContext } from "@octavo/tracing";
import type { RunnerFlags } from "./eval-rows.js";

/** For the last results to be delivered when a run has ended. */
const lastResultsMs = 10_000;

/** Sends scores to an OpenTelemetry collector as they are made. */
export class EvaluationEvents implements AsyncDisposable {
  readonly #exporter: EvaluationExporter;
  readonly #onProblem: (message: string) => void;

  /** Undefined where no collector is named. Throws `invalid_option` for what is not an address. */
  static open(
    flags: Pick<RunnerFlags, "otlpEndpoint" | "otlpHeaders">,
    onProblem: (message: string) => void,
  ): EvaluationEvents | undefined {
    const { otlpEndpoint, otlpHeaders = {} } = flags;
    return otlpEndpoint === undefined
      ? undefined
      : new EvaluationEvents(otlpEndpoint, otlpHeaders, onProblem);
  }

  private constructor(
    endpoint: string,
    headers: Readonly<Record<string, string>>,
    onProblem: (message: string) => void,
  ) {
    const resource = { "service.name": process.env["OTEL_SERVICE_NAME"] ?? "octavo-eval" };
    this.#exporter = new EvaluationExporter({ endpoint, headers, resource });
    this.#onProblem = onProblem;
  }

  add(row: CaseRow): void {
    for (const [target, scored] of Object.entries(row.answers))
      for (const [evaluator, score] of Object.entries(scored.scores)) {
        const result = resultOf(row, target, scored, evaluator, score);
        if (result !== undefined) this.#exporter.add(result);
      }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#exporter.close(lastResultsMs);
    const { droppedFull, droppedFailed } = this.#exporter.counts;
    const lost = droppedFull + droppedFailed;
    if (lost > 0) this.#onProblem(`${lost} scores did not reach the collector`);
  }
}

/** Undefined where nothing was evaluated. */
function resultOf(
  { caseId, dataset }: CaseRow,
  target: string,
  { answer }: ScoredAnswer,
  name: string,
  score: Score,
): EvaluationResult | undefined {
  if (score.status === "skipped") return undefined;
  const { timing, responseId, headers } = answer;
  const context = parseTraceContext(headers["traceresponse"]);
  return {
    name,
    epochMs: timing.sentEpochMs + timing.durationMs,
    ...(score.status === "scored"
      ? {
          scoreValue: score.value,
          scoreLabel: score.label ?? (score.passed ? "pass" : "fail"),
          explanation: score.reason,
        }
      : { errorType: score.code, explanation: score.reason }),
    responseId,
    span: context && { traceId: context.traceId, spanId: context.spanId },
    attributes: { "octavo.case.id": caseId, "octavo.dataset": dataset, "octavo.target": target },
  };
}
