import { type CheckRow, type EvalReport, gatherSpans } from "@octavo/evals";

export interface SpanFlags {
  readonly set?: Readonly<Record<string, unknown>>;
  readonly seed: number;
  readonly name?: string;
}

/** A check's judgement of spans that were recorded elsewhere, as a report. */
export async function reportOfSpans(
  row: CheckRow,
  files: readonly string[],
  { set: settings = {}, seed, name }: SpanFlags,
): Promise<EvalReport> {
  const startedAt = new Date();
  row.checkSettings(settings);
  const observations = await gatherSpans(
    files.map((file) => {
      const [, condition = "candidate", path = file] = /^([A-Za-z][\w-]*)=(.+)$/.exec(file) ?? [];
      return { condition, path };
    }),
  );
  return {
    format: "octavo.eval/1",
    name: name ?? `${row.name}, from spans`,
    startedAt: startedAt.toISOString(),
    durationMs: Date.now() - startedAt.getTime(),
    seed,
    targets: [],
    datasets: files.map((file) => ({ name: file })),
    evaluators: [],
    calibrations: [],
    checks: [row.judge(observations, settings)],
    gate: undefined,
    cases: [],
    numCases: new Set(observations.map(({ caseId }) => caseId)).size,
    warnings: [],
  };
}
