import { readCases, writeResults } from "../../support/merged-results.js";
import type { RunRecord } from "../../support/results.js";
import type { CaseResult } from "./summarise.js";

export interface CpuRun extends RunRecord {
  /** What the peers call themselves, by their names here. */
  readonly peers: Readonly<Record<string, string>>;
}

/** Each case keeps the record of the run that it is from. */
type RecordedCase = CaseResult & { readonly run: CpuRun };

export interface CpuResults extends CpuRun {
  readonly benchmark: "cpu";
  readonly cases: readonly RecordedCase[];
}

/** Figures of one run take the place of earlier ones of the same name, peer and kind of target; the others stay. */
export function mergeResults(
  earlier: readonly RecordedCase[],
  run: CpuRun,
  cases: readonly CaseResult[],
): CpuResults {
  const merged = new Map(earlier.map((line) => [keyOf(line), line]));
  for (const line of cases) merged.set(keyOf(line), { ...line, run });
  return { benchmark: "cpu", ...run, cases: [...merged.values()] };
}

function keyOf({ name, peerName, target }: CaseResult): string {
  return [name, peerName ?? "", peerName === undefined ? (target?.on ?? "") : ""].join("|");
}

/** Merges into a file, which is made where there is none. */
export function saveResults(path: string, run: CpuRun, cases: readonly CaseResult[]): CpuResults {
  const results = mergeResults(readCases(path, "cpu") as RecordedCase[], run, cases);
  writeResults(path, results);
  return results;
}
